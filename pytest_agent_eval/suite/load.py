"""eval.yaml -> :class:`Suite`: everything that is wrong with it is reported in one go."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import xxhash
from pydantic import ValidationError

from pytest_agent_eval.documents import MAX_BYTES, Document, parse_yaml
from pytest_agent_eval.errors import DocumentError, Problem, SuiteError
from pytest_agent_eval.suite.checks import check
from pytest_agent_eval.suite.examples import ExampleFiles, check_examples
from pytest_agent_eval.suite.findings import Findings
from pytest_agent_eval.suite.known import Known
from pytest_agent_eval.suite.labels import LabelFiles, check_labels
from pytest_agent_eval.suite.messages import explain, shown
from pytest_agent_eval.suite.models.suite import SuiteConfig
from pytest_agent_eval.suite.suite import Suite
from pytest_agent_eval.suite.tool_handlers import HandlerFiles, check_handlers
from pytest_agent_eval.suite.variants import matrix_variants, variant_parts, variant_values

__all__ = ["load_suite"]


def load_suite(
    path: str | os.PathLike[str],
    *,
    rootdir: str | os.PathLike[str] | None = None,
    known: Known | None = None,
    text: bytes | str | None = None,
) -> Suite:
    """Read and check a suite.

    Args:
        path: its file.
        rootdir: messages name the file relative to it (default: the current directory).
        known: names that plugins and the project add.
        text: the file's content, where it has been read already.

    Raises:
        SuiteError: with all problems of the file, sorted by line.
    """
    known = known or Known()
    file = os.path.abspath(path)
    name = _shown(file, rootdir)
    data = _read(file, name) if text is None else text.encode() if isinstance(text, str) else text
    document = _parse(data, name)
    directory = os.path.dirname(file)
    labels, examples = LabelFiles(directory, name), ExampleFiles(directory, name)
    handlers = HandlerFiles.beside(directory, name)

    def check_all(data: Mapping[str, Any], findings: Findings) -> None:
        check(data, findings, known, directory)
        check_labels(data, findings, known, labels)
        check_examples(data, findings, known, examples)
        check_handlers(data, findings, handlers)

    config, findings, variants, placeholders = _check(document, known, check_all)
    problems = [*document.problems, *findings.problems.values()]
    if config is None or problems:
        raise SuiteError(*_sorted(problems))
    return Suite(
        file=Path(file),
        shown=name,
        directory=Path(directory),
        name=config.name or os.path.basename(directory) or "suite",
        config=config,
        digest=xxhash.xxh3_128_hexdigest(data),
        warnings=_sorted(findings.warnings.values()),
        positions=document.positions,
        value_positions=document.values,
        variants=variants,
        placeholders=placeholders,
        labels=labels.read,
        examples=examples.read,
        known=known,
        handler_files=handlers,
    )


def _read(file: str, name: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SuiteError(Problem(f"cannot be read: {reason}", file=name, line=1)) from None


def _parse(data: bytes, name: str) -> Document:
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise SuiteError(Problem(message, file=name, line=1))
    try:
        document = parse_yaml(data, file=name, positions=True, keep_going=True)
    except DocumentError as error:
        raise SuiteError(*_sorted(error.problems)) from None
    if not isinstance(document.data, dict):
        found = "the file is empty" if document.data is None else f"it is {shown(document.data)}"
        message = f"a suite is a mapping with at least dataset and runner; {found}"
        raise SuiteError(*_sorted([*document.problems, Problem(message, file=name, line=1)]))
    return document


def _check(
    document: Document,
    known: Known,
    check_all: Callable[[Mapping[str, Any], Findings], None],
) -> tuple[
    SuiteConfig | None, Findings, Mapping[str, SuiteConfig], Mapping[str, Mapping[str, str]]
]:
    data: dict[str, Any] = document.data
    findings = Findings(document)
    config = _validate(data, findings, known)
    check_all(data, findings)
    variants: dict[str, SuiteConfig] = {}
    if data.get("variants"):
        if data.get("matrix") is not None:
            findings.warn(("matrix",), "ignored: the suite has variants")
        placeholders = variant_values(data, findings)
        hidden = frozenset(findings.problems) | frozenset(findings.warnings)
        for name, whole in variant_parts(data, findings):
            part = Findings(document, ("variants", name), hidden)
            found = _validate(whole, part, known)
            check_all(whole, part)
            for (place, message), problem in part.problems.items():
                findings.problems[("variants", name, *place), message] = problem
            if found is not None:
                variants[name] = found
    else:
        variants, placeholders = matrix_variants(data, config, findings)
    return config, findings, variants, placeholders


def _validate(data: Mapping[str, Any], findings: Findings, known: Known) -> SuiteConfig | None:
    try:
        config = SuiteConfig.model_validate(data, context=known)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            findings.problem(*explain(item, known.judge_kinds))
        return None
    if config.skill is not None and config.execution.skill is None:
        execution = config.execution.model_copy(update={"skill": config.skill})
        config = config.model_copy(update={"execution": execution})
    return config


def _sorted(problems: Any) -> tuple[Problem, ...]:
    """By line, each once; what has no line of its own belongs to the whole file."""
    found = dict.fromkeys(item if item.line else replace(item, line=1) for item in problems)
    return tuple(sorted(found, key=lambda item: (item.line or 1, item.column or 0)))


def _shown(file: str, rootdir: str | os.PathLike[str] | None) -> str:
    base = os.path.abspath(rootdir) if rootdir is not None else os.getcwd()
    try:
        relative = os.path.relpath(file, base)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative.replace(os.sep, "/")
