"""Suites and cases as pytest nodes, and how the result of a case becomes a pytest outcome.

The only file of the package that touches what pytest does not call public.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code import filter_traceback

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr, Traceback, TracebackEntry
    from _pytest.fixtures import FixtureDef, FuncFixtureInfo

    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.cases import BrokenCase, Case
    from pytest_agent_eval.evidence.outcomes import CaseOutcome
    from pytest_agent_eval.session import EvalSession

__all__ = ["SEALED", "SESSION", "BrokenItem", "CaseItem", "FailureText", "ForeignFile", "SuiteFile"]

SESSION: pytest.StashKey[EvalSession] = pytest.StashKey()

SEALED = "sealed: counted in the aggregates only (--agent-eval-reveal opens the half)"
"""All that is told of a case of a sealed half."""

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class CaseFailed(Exception):
    """A verdict fails, or the agent did: the case is failed."""


class CaseErrored(Exception):
    """The case could not be tried: its files or the infrastructure; pytest's *error*."""


class FailureText:
    """The failure block of a case as pytest prints it; the summary line shows its first line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reprcrash = self

    @property
    def message(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]

    def toterminal(self, writer: Any) -> None:
        """Print the block: the first line as an error, the rest as it is."""
        from pytest_agent_eval.reports.workflow_commands import defused

        for number, line in enumerate(defused(self.text, os.environ).splitlines()):
            writer.line(line, red=number == 0, bold=number == 0)

    def __str__(self) -> str:
        return self.text


class ForeignFile(pytest.File):
    """A file named on the command line as a suite that is none: says what is missing."""

    reason = ""

    def collect(self) -> Iterator[pytest.Item]:
        """Raise the reason.

        Raises:
            CollectError: always.
        """
        raise self.CollectError(self.reason)


def _case(*args: object) -> None:
    """Stand in as the function of a case, which :meth:`CaseItem.runtest` never calls."""


class SuiteFile(pytest.Module):
    """One eval.yaml. A Module without an object, so that module-scoped fixtures work."""

    obj = None
    state: ActiveSuite

    def collect(self) -> Iterator[CaseItem | BrokenItem]:
        """Make an item for each case of the suite, in dataset order.

        Raises:
            CollectError: the suite or its dataset cannot be used; shows every problem.
        """
        from pytest_agent_eval.cases import BrokenCase
        from pytest_agent_eval.errors import AgentEvalError, DocumentError, SuiteError

        session = self.config.stash[SESSION]
        try:
            self.state = session.open_suite(self)
            self.state.read_cases()
            cases = self.state.in_order(session.trials.session_id)
        except (SuiteError, DocumentError) as error:
            raise self.CollectError(str(error)) from None  # names the file itself
        except AgentEvalError as error:
            raise self.CollectError(f"{session.relative(self.path)}: {error}") from None
        problem = session.named_problem(self.state)
        if problem:
            raise self.CollectError(problem)
        marks = session.marks()
        fixtures: FuncFixtureInfo | None = None
        for case in cases:
            marked: list[pytest.MarkDecorator] = []
            if not isinstance(case, BrokenCase):
                applicable = self.state.applicable(case)
                if self.state.is_sealed(case):  # its tags would tell which case it is
                    marked = [pytest.mark.holdout]
                else:
                    marked = marks.of(case, applicable)
            for variant in self.state.variants:
                if isinstance(case, BrokenCase):
                    item: CaseItem | BrokenItem = BrokenItem.make(self, case, variant)
                else:
                    item = CaseItem.make(self, case, variant, fixtures)
                    # Every case needs the same fixtures; working them out is the dearest part.
                    fixtures = item._fixtureinfo
                    item.mark(marked)
                if not self.state.asked:
                    item.add_marker(_not_asked(self.state.key))
                if item.sealed:
                    session.sealed.add(item.nodeid)
                yield item
        self.state.note_one_sided_conditions()


class CaseItem(pytest.Function):
    """One case, in one variant. Waits for the engine, and turns what it says into an outcome.

    Attributes:
        case, suite, variant: what it is about; ``variant`` is None where the suite has none.
        outcome: once it is there.
    """

    # One attribute more would take 700 bytes: a dict of attributes grows in leaps.
    __slots__ = ("case", "outcome", "suite", "variant")

    case: Case
    suite: ActiveSuite
    variant: str | None
    outcome: CaseOutcome | None

    @classmethod
    def make(
        cls,
        parent: SuiteFile,
        case: Case,
        variant: str | None,
        fixtures: FuncFixtureInfo | None,
    ) -> CaseItem:
        """Build the item of a case; ``fixtures`` are those of an earlier item of this suite."""
        name = parent.state.shown_name(case)
        name = name if variant is None else f"{name}[{variant}]"
        item: CaseItem = cls.from_parent(parent, name=name, callobj=_case, fixtureinfo=fixtures)
        item.case = case
        item.suite = parent.state
        item.variant = variant
        item.outcome = None
        return item

    @property
    def sealed(self) -> bool:
        """Whether nothing may be shown of this case by itself."""
        return self.suite.is_sealed(self.case)

    @property
    def label(self) -> str:
        """The case, with ``[variant]`` where it has one, as it is stored."""
        name = self.case.name
        return name if self.variant is None else f"{name}[{self.variant}]"

    @property
    def trials(self) -> int:
        """How often the case is carried out."""
        return self.suite.varied(self.variant).config.execution.trials

    def fixture_scope(self, name: str) -> str:
        """``function``, ``class``, ``module``, ``package`` or ``session``; empty if there is no
        such fixture.
        """
        found = self._fixture_named(name)
        return found.scope if found else ""

    def fixture_problem(self, name: str) -> str:
        """Why a fixture cannot be the agent, and what would fit; empty if it can."""
        found = self._fixture_named(name)
        if found:
            several = found.params is not None
            hint = "an agent needs one value; use variants to compare several"
            return f"fixture {name!r} has params, and {hint}" if several else ""
        import difflib  # not at start-up, where nothing else needs it

        # pytest keeps the names in another place in each version, and says them in one way.
        said = pytest.FixtureLookupError(name, self._request).formatrepr().errorstring
        others = re.findall(r"[\w]+", said.partition("available fixtures: ")[2].partition("\n")[0])
        close = difflib.get_close_matches(name, others, n=3)
        own = [other for other in others if self._is_of_project(other)]
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        if own and not close:
            hint = f"the project has {', '.join(sorted(own)[:8])}. "
        return (
            f"there is no fixture {name!r}; {hint}"
            f'To define it, write in conftest.py @pytest.fixture(scope="session") above '
            f"def {name}(), and return a function of one task"
        )

    def _is_of_project(self, fixture: str) -> bool:
        found = self._fixture_named(fixture)
        code = getattr(found.func, "__code__", None) if found else None
        return code is not None and os.path.basename(code.co_filename) == "conftest.py"

    def _fixture_named(self, name: str) -> FixtureDef[Any] | None:
        """The one that this case would get, of all that have the name."""
        found = self.session._fixturemanager.getfixturedefs(name, self)
        return found[-1] if found else None

    def mark(self, marks: list[pytest.MarkDecorator]) -> None:
        """Add marks; in bulk, because there may be 10,000 cases with ten marks each."""
        self.own_markers.extend([mark.mark for mark in marks])
        self.keywords.update((mark.name, mark) for mark in marks)

    def setup(self) -> None:
        """Set the fixtures up, then wait for the result of the case.

        Raises:
            CaseErrored: the case could not be tried.
        """
        super().setup()
        if _only_looking(self.config):
            return
        self.outcome = self.config.stash[SESSION].outcome(self)
        if self.outcome.status == "error":
            raise CaseErrored

    def teardown(self) -> None:
        """Remove the workspace, if pytest's retention policy says so."""
        super().teardown()
        self.config.stash[SESSION].trials.clean(self)

    def owns(self, error: BaseException) -> bool:
        """Whether this item says what an exception means, and not pytest."""
        return isinstance(error, CaseFailed | CaseErrored | pytest.FixtureLookupError)

    def fixture(self, name: str) -> Any:
        """The value of a fixture, set up for this item if it is not yet."""
        return self._request.getfixturevalue(name)

    def runtest(self) -> None:
        """Raise what the result says."""
        assert self.outcome is not None
        session = self.config.stash[SESSION]
        if session.options.subtests and not self.sealed:
            session.reports.report_subtests(self, self._request.getfixturevalue("subtests"))
        if self.outcome.status == "failed":
            raise CaseFailed
        if self.outcome.status == "skipped":
            pytest.skip(SEALED if self.sealed else self.outcome.reason)

    def repr_failure(  # type: ignore[override]
        self, excinfo: ExceptionInfo[BaseException]
    ) -> str | TerminalRepr | FailureText:
        """The failure block; pytest's own representation for anything that is not ours."""
        if self.sealed:
            return FailureText(SEALED)
        if isinstance(excinfo.value, pytest.FixtureLookupError):
            return self._without_stand_in(excinfo.value)
        if self.owns(excinfo.value) and self.outcome is not None:
            reports = self.config.stash[SESSION].reports
            return FailureText(reports.failure_block(self, self.outcome))
        return super().repr_failure(excinfo)

    def _without_stand_in(self, error: pytest.FixtureLookupError) -> TerminalRepr:
        """What pytest says of a fixture that is missing, without the function of ours that it
        takes for the one that wants it.
        """
        shown = error.formatrepr()
        lines = list(shown.tblines)
        files = [number for number, line in enumerate(lines) if line.startswith("file ")]
        if len(files) > 1:
            shown.tblines = lines[files[1] :]
        else:
            shown.tblines, shown.filename, shown.firstlineno = [], str(self.path), 0
        return shown

    def _traceback_filter(self, excinfo: ExceptionInfo[BaseException]) -> Traceback:
        """Frames of the user's code: neither those of this package nor those of pytest."""
        whole = excinfo.traceback
        if self.config.getoption("fulltrace", False) or _is_ours(whole[-1]):
            return whole
        shown = whole.filter(lambda entry: filter_traceback(entry) and not _is_ours(entry))
        return shown or whole

    def reportinfo(self) -> tuple[Path | str, int | None, str]:
        """Where the case is: its suite's file."""
        return self.path, 0, _heading(self.name)


class BrokenItem(pytest.Item):
    """A case directory that cannot be used: an error of this case alone."""

    case: BrokenCase
    suite: ActiveSuite
    variant: str | None
    outcome: CaseOutcome | None = None

    @classmethod
    def make(cls, parent: SuiteFile, case: BrokenCase, variant: str | None) -> BrokenItem:
        """Build the item of a broken case. Its name is shown so that pytest can address it."""
        name = _addressable(parent.state.shown_name(case))
        item: BrokenItem = cls.from_parent(
            parent, name=name if variant is None else f"{name}[{variant}]"
        )
        item.case = case
        item.suite = parent.state
        item.variant = variant
        return item

    @property
    def sealed(self) -> bool:
        """Whether nothing may be shown of this case by itself."""
        return self.suite.is_sealed(self.case)

    def setup(self) -> None:
        """Raise the error of the case, so that pytest counts an error and not a failure.

        Raises:
            CaseError: always, unless only fixtures are shown.
        """
        if not _only_looking(self.config):
            self.outcome = self.config.stash[SESSION].record_broken(self)
            raise self.case.error

    def owns(self, error: BaseException) -> bool:
        """Whether an exception is how this item says what happened."""
        return error is self.case.error

    def runtest(self) -> None:
        """Never reached: :meth:`setup` raises."""

    def repr_failure(  # type: ignore[override]
        self, excinfo: ExceptionInfo[BaseException]
    ) -> str | TerminalRepr | FailureText:
        """The message alone."""
        if self.sealed:
            return FailureText(SEALED)
        if self.owns(excinfo.value):
            return FailureText(str(excinfo.value))
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path | str, int | None, str]:
        """Where the case is: its suite's file."""
        return self.path, 0, _heading(self.name)


def _is_ours(entry: TracebackEntry) -> bool:
    return str(entry.path).startswith(_PACKAGE)


def _only_looking(config: pytest.Config) -> bool:
    """Whether fixtures are shown and nothing runs."""
    return bool(config.getoption("setuponly", False) or config.getoption("setupplan", False))


def _heading(name: str) -> str:
    """A name as headings show it. For ``-v`` pytest takes the same text to be a path of Python
    names and writes ``::`` for each dot of it, unless it differs from the end of the node id.
    """
    return f"{name} " if "." in name.partition("[")[0] else name


def _addressable(name: str) -> str:
    """A name without the characters that would make a node id mean something else."""
    shown = name.replace("::", ":\\u003a")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )


def _not_asked(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skip(
        reason=f"agents cost time and money: run with --agent-eval, or name {name}"
    )
