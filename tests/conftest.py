from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

from pytest_agent_eval.llm import ModelProcess

pytest_plugins = ["pytester"]

# No test depends on timing. tox asks for the same examples in every run, so that a change is judged
# by what it changes; without tox each run looks at new ones.
settings.register_profile("exploring", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "exploring"))


# A shell lets what it runs in the background ignore Ctrl-C, and so would all that tests start.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def models() -> Iterator[ModelProcess]:
    """A process that asks models, for all tests: it takes seconds to start."""
    process = ModelProcess()
    yield process
    process.close()


@pytest.fixture(autouse=True)
def _steady_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that does not depend on where the tests run."""
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
