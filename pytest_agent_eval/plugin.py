"""The pytest hooks, and nothing else: each is a few lines that call into the rooms.

Imports nothing heavy: a project that has the plugin installed and no suite must not notice it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval import hookspecs
from pytest_agent_eval.arguments import Datasets
from pytest_agent_eval.baton import BATON
from pytest_agent_eval.items import SESSION, BrokenItem, CaseItem, ForeignFile, SuiteFile
from pytest_agent_eval.markers import MARKERS
from pytest_agent_eval.options import add_options, read_options
from pytest_agent_eval.receiver import Receiver, tolerated_status
from pytest_agent_eval.session import EvalSession
from pytest_agent_eval.xdist import Transport, is_controller


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the plugin's own hooks."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Turn case directories on the command line into node ids, before pytest looks into them."""
    if not early_config.known_args_namespace.agent_eval_off:
        datasets = Datasets(early_config.getini("agent_eval_files"), str(early_config.rootpath))
        datasets.rewrite_all(
            args,
            early_config.known_args_namespace.file_or_dir,
            str(early_config.invocation_params.dir),
        )


def pytest_configure(config: pytest.Config) -> None:
    """Read the options and open the session's state."""
    session = EvalSession(config, read_options(config))
    config.stash[SESSION] = session
    config.pluginmanager.register(Receiver(session), "agent-eval-receiver")
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(Transport(session), "agent-eval-xdist")
        if session.options.progress and session.worker is None:
            from pytest_agent_eval.controller_progress import ControllerProgress

            progress = ControllerProgress(config, session.is_case)
            config.pluginmanager.register(progress, "agent-eval-progress")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what is still running; the usual end is ``pytest_sessionfinish``."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep pytest out of datasets: a ``test_x.py`` in a case directory is data."""
    return config.stash[SESSION].ignores(collection_path) or None


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> SuiteFile | ForeignFile | None:
    """Collect suites."""
    return parent.config.stash[SESSION].collect_file(file_path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply the plugin's own selection, before ``-m`` and ``-k``."""
    config.stash[SESSION].select(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Plan the trials of what is left."""
    session.config.stash[SESSION].plan(session.items)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what will run."""
    return config.stash[SESSION].headline()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Let the trials go on."""
    BATON.give()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the result of a case to the report that decides its outcome."""
    report = yield
    session = item.config.stash[SESSION]
    if isinstance(item, CaseItem | BrokenItem):
        session.reports.annotate(item, report, call.excinfo)
    session.sealed.hush(report)
    return report


def pytest_report_teststatus(
    report: Any,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Give ``tolerated`` a status of its own."""
    return tolerated_status(report)


@pytest.hookimpl(wrapper=True, trylast=True)  # within the terminal's, which prints the summary
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Close the run and decide the gates."""
    eval_session = session.config.stash[SESSION]
    eval_session.sealed.forget(session.config)
    with eval_session.finishing():
        eval_session.decide(session)
        if is_controller(session.config):  # its workers end in the same hook, and store until then
            try:
                yield
            finally:
                eval_session.finish(session)
        else:  # others remove temporary directories in it, also those of agents
            eval_session.finish(session)
            yield


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print aggregates, gates and where the run is stored."""
    config.stash[SESSION].print_summary(terminalreporter)
