from __future__ import annotations

import pytest

from tests.plugin.conftest import Project


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)
