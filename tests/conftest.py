from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _steady_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that does not depend on where the tests run."""
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
