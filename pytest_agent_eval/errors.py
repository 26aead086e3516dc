"""Every error a user of the plugin can cause, in one tree.

::

    AgentEvalError
    |-- SuiteError          an eval.yaml that cannot be used; carries all its problems
    |-- CaseError           one case directory that cannot be used; the other cases run
    |-- DocumentError       a YAML or JSON file that cannot be read
    |-- TemplateError       execution.prompt, arguments or a command that cannot be rendered
    |-- ConditionError      an `if:` or `pass_if:` that cannot be compiled, or that raised
    |-- RunnerError         the agent could not be started (infrastructure, not the agent's fault)
    |-- JudgeError          a judge that raised or answered something that is no verdict
    |-- RunDirectoryError   results that cannot be written or read
    |-- ReportError         a report that cannot be made or written
    `-- SelectionError      options that select nothing, or that cannot be understood

A message says what is wrong, where (file, line, key) and what would fit.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AgentEvalError",
    "CaseError",
    "ConditionError",
    "DocumentError",
    "JudgeError",
    "Problem",
    "ReportError",
    "RunDirectoryError",
    "RunnerError",
    "SelectionError",
    "SuiteError",
    "TemplateError",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one file.

    Attributes:
        message: what is wrong and what would fit, one sentence, no full stop needed.
        path: where inside the document, e.g. ``judges[2].score_range``; empty for the whole file.
        file: the file as it should be printed; empty when there is none.
        line: 1-based line, or None.
        column: 1-based column, or None.
    """

    message: str
    path: str = ""
    file: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """``eval.yaml:4: judges[0].feedback_typ: unknown key; did you mean feedback_type?``.

        The column is there where no path says which part of the line is meant:
        ``input.yaml:3:9: not valid YAML: ...``.
        """
        where = self.file
        if where and self.line is not None:
            where += f":{self.line}"
            if self.column is not None and not self.path:
                where += f":{self.column}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


class AgentEvalError(Exception):
    """Root of the tree; catching it catches every mistake a user can make."""


class SuiteError(AgentEvalError):
    """An eval.yaml that cannot be used. ``problems`` holds all of them, in file order."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class DocumentError(AgentEvalError):
    """A YAML or JSON file that cannot be read. ``problems`` says where and why."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class CaseError(AgentEvalError):
    """One case that cannot be used; the message starts with the case's name."""

    def __init__(self, case: str, message: str) -> None:
        super().__init__(f"{case}: {message}")
        self.case = case
        self.message = message


class TemplateError(AgentEvalError):
    """A template that cannot be parsed or rendered; names the placeholder."""


class ConditionError(AgentEvalError):
    """A condition that cannot be compiled, or that raised while it was evaluated."""


class RunnerError(AgentEvalError):
    """The runner could not start the agent: infrastructure, never a verdict on the agent.

    Args:
        message: what is wrong, where, what would fit; ``{case}`` becomes the case's name, which a
            runner does not know.
        lasting: it will be so again, as for a command that does not exist: never tried again,
            whatever ``execution.retries`` says.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class JudgeError(AgentEvalError):
    """A judge that raised, or whose answer is not a verdict."""


class RunDirectoryError(AgentEvalError):
    """A run directory that cannot be created, written or read."""


class ReportError(AgentEvalError):
    """A report that was asked for and cannot be made or written."""


class ExportError(ReportError):
    """What happens to the run elsewhere has failed: it is said, and changes no exit status."""


class SelectionError(AgentEvalError):
    """Options that select no case, or that cannot be understood."""
