"""Handlers of questions and tool calls, read and resolved with the suite.

They come from ``tool_handlers.yaml`` beside the suite, or else from the prose of ``inputs.tools``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_agent_eval.documents import MAX_BYTES, parse_yaml
from pytest_agent_eval.errors import DocumentError, Problem
from pytest_agent_eval.suite.checks.tools import check_interception
from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.messages import explain, shown
from pytest_agent_eval.suite.models.tool_handlers import HandlerConfig, HandlersConfig
from pytest_agent_eval.suite.tool_names import QUESTION_TOOL, tools_in

if TYPE_CHECKING:
    from pytest_agent_eval.suite.suite import Suite

__all__ = [
    "HANDLERS",
    "HandlerFiles",
    "ToolHandlers",
    "ToolRule",
    "check_handlers",
    "tool_handlers",
]

HANDLERS = "tool_handlers.yaml"

_BASH = "Bash"
_FITS = (
    "name tools as Claude Code does, such as AskUserQuestion, Write or mcp__tickets__*, or speak "
    "of questions"
)


@dataclass(frozen=True)
class ToolRule:
    """One handler, ready to be used.

    Attributes:
        patterns: names of tools, or ``prefix*``.
        prompt: how to answer, or why a call is denied; may be empty.
        filters: regular expressions, in any letter case; one of them is found in the call's input.
        checks: variable -> texts that its value holds; empty: the call is denied.
    """

    patterns: tuple[str, ...]
    prompt: str = ""
    filters: tuple[str, ...] = ()
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def selects(self, tool: str, input: Any) -> bool:
        """Whether this handler is for a call.

        Args:
            tool: its name, as Claude Code's tools are called.
            input: its input, of JSON types.
        """
        if not any(_fits(pattern, tool) for pattern in self.patterns):
            return False
        if not self.filters:
            return True
        said = _searched(tool, input)
        return any(found.search(said) for found in self._compiled)

    def allows(self, environment: Mapping[str, str]) -> bool:
        """Whether the agent's environment allows the calls of this handler."""
        return bool(self.checks) and all(
            part in environment.get(name, "")
            for name, parts in self.checks.items()
            for part in parts
        )

    @property
    def reason(self) -> str:
        """Why a call is denied."""
        return self.prompt.strip() or f"denied by the handler of {', '.join(self.patterns)}"

    @property
    def answers_questions(self) -> bool:
        """Whether it is for questions."""
        return any(_fits(pattern, QUESTION_TOOL) for pattern in self.patterns)

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(one, re.IGNORECASE) for one in self.filters)


@dataclass(frozen=True)
class ToolHandlers:
    """All handlers of a suite; false where there are none.

    Attributes:
        rules: in order; the first that selects a call decides.
        hook_model: of ``tool_handlers.yaml``; empty when unset.
        overrides: question -> its answer, for all cases.
    """

    rules: tuple[ToolRule, ...] = ()
    hook_model: str = ""
    overrides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def rule(self, tool: str, input: Any) -> ToolRule | None:
        """The handler of a call; None: it is let through."""
        return next((rule for rule in self.rules if rule.selects(tool, input)), None)

    @property
    def answers_questions(self) -> bool:
        """Whether there is a handler of questions."""
        return any(rule.answers_questions for rule in self.rules)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Of all handlers, each once."""
        return tuple(dict.fromkeys(one for rule in self.rules for one in rule.patterns))

    def to_dict(self) -> dict[str, Any]:
        """All that decides what an agent is answered; of JSON types."""
        return {
            "rules": [
                [
                    list(rule.patterns),
                    rule.prompt,
                    list(rule.filters),
                    {name: list(parts) for name, parts in rule.checks.items()},
                ]
                for rule in self.rules
            ],
            "overrides": {key: list(value) for key, value in self.overrides.items()},
        }


def tool_handlers(suite: Suite) -> ToolHandlers:
    """The handlers of a suite, as a variant changes it."""
    files = suite.handler_files
    whole = files.config or HandlersConfig.model_validate({})
    rules = [
        ToolRule(
            _patterns(one),
            files.prompt_of(one.prompt, one.prompt_file),
            one.input_filters,
            {name: check.must_contain for name, check in one.env_checks.items()},
        )
        for one in whole.handlers
    ]
    if not rules:
        rules = [
            ToolRule(tools_in(tool.match), files.prompt_of(tool.prompt, tool.prompt_file))
            for tool in suite.config.inputs.tools
        ]
    return ToolHandlers(tuple(rules), whole.hook_model, whole.case_overrides)


class HandlerFiles:
    """``tool_handlers.yaml`` and the files of prompts, each read once; made by :meth:`beside`.

    Args:
        directory: of the suite; paths are relative to it.
        shown: the suite's file as messages name it.

    Attributes:
        config: of ``tool_handlers.yaml``; None where there is none that can be used.
        problems: of that file.
    """

    def __init__(self, directory: str, shown: str) -> None:
        self._directory = directory
        self._above = os.path.dirname(shown)
        self._texts: dict[str, str] = {}
        self.config: HandlersConfig | None = None
        self.problems: tuple[Problem, ...] = ()

    @classmethod
    def beside(cls, directory: str, shown: str) -> HandlerFiles:
        """The files of the suite in a directory; what is wrong with them is in ``problems``."""
        self = cls(directory, shown)
        if os.path.lexists(os.path.join(directory, HANDLERS)):
            self._read()
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were read, relative to the suite: an agent is to see none of them."""
        return tuple(self._texts)

    def text(self, path: str) -> str:
        """The text of a file.

        Raises:
            ValueError: it cannot be read; a sentence without the path.
        """
        if path not in self._texts:
            try:
                with open(os.path.join(self._directory, path), "rb") as stream:
                    data = stream.read(MAX_BYTES + 1)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise ValueError(f"cannot be read: {reason}") from None
            if len(data) > MAX_BYTES:
                raise ValueError(f"is larger than {MAX_BYTES // 1024 // 1024} MiB")
            try:
                self._texts[path] = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise ValueError("is no text in UTF-8") from None
        return self._texts[path]

    def prompt_of(self, prompt: str | None, file: str | None) -> str:
        """The prompt of a handler: its own, and that of its file."""
        texts = (prompt or "", self.text(file) if file else "")
        return "\n\n".join(one.strip() for one in texts if one.strip())

    def _read(self) -> None:
        name = os.path.join(self._above, HANDLERS).replace(os.sep, "/")
        try:
            document = parse_yaml(self.text(HANDLERS), file=name, positions=True, keep_going=True)
        except ValueError as error:
            self.problems = (Problem(str(error), file=name, line=1),)
            return
        except DocumentError as error:
            self.problems = error.problems
            return
        findings = Findings(document)
        data = document.data if document.data is not None else {}
        if not isinstance(data, dict):
            found = f"it is a mapping with handlers and case_overrides, not {shown(data)}"
            self.problems = (*document.problems, Problem(found, file=name, line=1))
            return
        try:
            config = HandlersConfig.model_validate(data)
        except ValidationError as error:
            for item in error.errors(include_url=False):
                findings.problem(*explain(item, root=HandlersConfig))
        else:
            for index, handler in enumerate(config.handlers):
                self._check(handler, ("handlers", index), findings)
            self.config = config
        self.problems = (*document.problems, *findings.problems.values())

    def _check(self, handler: HandlerConfig, place: Place, findings: Findings) -> None:
        patterns = _patterns(handler)
        if not patterns:
            found = f"{shown(handler.match)} names no tool" if handler.match else "there is no tool"
            findings.problem((*place, "match"), f"{found}; list patterns, or {_FITS}")
        if not handler.input_filters and any(one != "*" and _fits(one, _BASH) for one in patterns):
            message = "a handler of Bash needs input_filters: which commands it is for"
            findings.problem(place, message)
        for name, check in handler.env_checks.items():
            if not check.must_contain:
                findings.problem((*place, "env_checks", name), "must_contain is empty")
        if handler.prompt_file:
            try:
                self.text(handler.prompt_file)
            except ValueError as error:
                findings.problem((*place, "prompt_file"), f"{handler.prompt_file} {error}")


def check_handlers(data: Mapping[str, Any], findings: Findings, files: HandlerFiles) -> None:
    """Note what is wrong with the handlers of a suite: with the file's, or with ``inputs.tools``.

    Args:
        data: of the suite, or of a variant.
        findings: of the suite.
        files: beside it.
    """
    for problem in files.problems:
        findings.elsewhere((HANDLERS, problem.line or 1, problem.path), problem)
    listed = entries(block(data, "inputs"), "tools")
    written = files.config.handlers if files.config is not None else ()
    if written or listed:
        check_interception(data, findings, ("inputs", "tools") if listed else ("runner",))
    if files.config is None and files.problems:
        return
    if written and listed:
        known = {" ".join(one.match.split()) for one in written}
        lost = [i for i, one in listed if " ".join(text(one, "match").split()) not in known]
        for index in lost:
            message = f"ignored: {HANDLERS} is used, and no handler there has this match"
            findings.warn(("inputs", "tools", index), message)
        return
    for index, tool in listed:
        place = ("inputs", "tools", index)
        for where, message in _misfits(tool, files):
            findings.problem((*place, *where), message)


def _misfits(tool: Mapping[str, Any], files: HandlerFiles) -> Iterator[tuple[Place, str]]:
    match = text(tool, "match")
    found = tools_in(match)
    if match.strip() and not found:
        yield ("match",), f"{shown(match)} names no tool; {_FITS}"
    if _BASH in found:
        yield (
            ("match",),
            "a handler of Bash has to say which commands it is for: write it into "
            f"{HANDLERS} beside the suite, with input_filters",
        )
    path = tool.get("prompt_file")
    if isinstance(path, str) and path.strip() and "\0" not in path and ".." not in path:
        try:
            files.text(path)
        except ValueError as error:
            yield ("prompt_file",), f"{path} {error}"


def _patterns(handler: HandlerConfig) -> tuple[str, ...]:
    return handler.patterns or tools_in(handler.match)


def _fits(pattern: str, tool: str) -> bool:
    if pattern.endswith("*"):
        return tool.startswith(pattern[:-1])
    return tool == pattern


def _searched(tool: str, input: Any) -> str:
    """What filters look at: a command as it is written, any other input as JSON."""
    command = input.get("command") if tool == _BASH and isinstance(input, Mapping) else None
    return command if isinstance(command, str) else json.dumps(input, ensure_ascii=False)
