"""The names a suite may use: runner types, judge kinds, builtin judges and generation prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ASKED_BY_WORDS",
    "BUILTIN_JUDGES",
    "BUILTIN_RUNNER_TYPES",
    "GENERATION_PROMPTS",
    "LLM_BUILTIN_JUDGES",
    "MODEL_RUNNERS",
    "PAIRWISE",
    "RESERVED_JUDGE_NAMES",
    "Known",
    "both_forms",
]

BUILTIN_RUNNER_TYPES = frozenset(
    {"cli", "python", "claude-code", "codex", "responses-api", "litellm"}
)
MODEL_RUNNERS = frozenset({"litellm", "responses-api"})
"""Runner types whose agent is a model."""
ASKED_BY_WORDS = MODEL_RUNNERS | {"claude-code", "codex"}
"""Runner types that have nothing to do without a skill, a prompt or arguments."""
CODE_BUILTIN_JUDGES = frozenset(
    {
        "efficiency/cost_budget",
        "efficiency/duration_budget",
        "efficiency/token_budget",
        "efficiency/turn_budget",
        "process/consulted_docs",
        "process/tool_call_validation",
        "process/tools_used",
        "quality/contains",
        "quality/json_schema",
        "quality/matches_expected",
        "quality/python_tests",
        "quality/regex",
    }
)
LLM_BUILTIN_JUDGES = frozenset({"quality/output_completeness", "safety/no_harmful_content"})
BUILTIN_JUDGES = CODE_BUILTIN_JUDGES | LLM_BUILTIN_JUDGES
GENERATION_PROMPTS = frozenset(
    {
        "docs/anti-pattern",
        "docs/architecture",
        "docs/authoring",
        "docs/component-usage",
        "docs/navigation",
    }
)
PAIRWISE = "pairwise"
"""Reserved judge name: it compares the trials of two runs, and asserts nothing of one."""
RESERVED_JUDGE_NAMES = frozenset({"execution"})
"""Names of verdicts that no judge gives: ``execution`` is the verdict on the agent itself."""


def both_forms(names: frozenset[str]) -> frozenset[str]:
    """``category/name`` and the bare ``name`` of each."""
    return names | {name.rpartition("/")[2] for name in names}


@dataclass(frozen=True)
class Known:
    """The names that exist besides those of eval.yaml's own keys.

    Attributes:
        runner_types: for ``runner.type``; plugins add theirs.
        judge_kinds: keys of a judge's entry that plugins registered as kinds.
        builtins: for a judge's ``builtin``, bare and as ``category/name``; a project adds its own.
        llm_builtins: those of ``builtins`` that ask a model; their verdict is always a boolean.
        prompts: for a seed's ``builtin``, bare and as ``category/name``.
    """

    runner_types: frozenset[str] = BUILTIN_RUNNER_TYPES
    judge_kinds: frozenset[str] = frozenset()
    builtins: frozenset[str] = field(default=both_forms(BUILTIN_JUDGES))
    llm_builtins: frozenset[str] = field(default=both_forms(LLM_BUILTIN_JUDGES))
    prompts: frozenset[str] = field(default=both_forms(GENERATION_PROMPTS))
