"""What a trial came to: the values that are stored, aggregated and reported.

Plain frozen dataclasses of primitives, so that they cross process borders (xdist workers,
stored lines) without conversion. Nothing here touches a file or pytest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["FAILURE_KINDS", "Status", "TrialResult", "Usage", "Value", "Verdict"]

Value = bool | int | float | None
Status = Literal["passed", "failed", "tolerated", "skipped", "error"]
"""Outcome of a case. ``error`` is infrastructure or a broken case, never a verdict on the agent."""

FailureKind = Literal[
    "", "verdict", "judge", "agent", "timeout", "budget", "infrastructure", "case"
]
"""Why a status is not ``passed``: a failing verdict, a judge error, the agent itself (exit status,
nothing produced), its timeout, its budget, the runner, or the case's own files."""

FAILURE_KINDS: tuple[FailureKind, ...] = (
    "",
    "verdict",
    "judge",
    "agent",
    "timeout",
    "budget",
    "infrastructure",
    "case",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge says about one trial.

    Exactly one of these holds: ``value`` is set, ``skipped`` is true, or ``error`` is not empty.

    Attributes:
        judge: the judge's name.
        value: bool, int or float; None when skipped or in error.
        rationale: why, in the judge's words (for ``skipped``: why it was skipped).
        passed: what the verdict asserts: the value of a boolean, or ``pass_if`` of a number;
            None when the verdict asserts nothing (a recorded number, skipped, error).
        skipped: the judge's ``if`` was false.
        error: the judge raised or its answer was no verdict; one sentence, else empty.
        detail: more text for a person (a traceback into eval.yaml, a difference); may be empty.
        duration_s: seconds of judging.
        digest: xxh3_128 over the definition of the judge that gave it; empty when unknown.
        asked: what asking a model took, else empty: ``model``, ``calls``, ``recorded`` (calls that
            were read from a recording), ``cost_usd``, ``input_tokens``, ``output_tokens`` (None:
            unknown), ``recordings`` (keys of the recordings that hold the calls); of several
            samples their ``values`` and ``agreement``, or ``lowest`` and
            ``highest``.
    """

    judge: str
    value: Value = None
    rationale: str = ""
    passed: bool | None = None
    skipped: bool = False
    error: str = ""
    detail: str = ""
    duration_s: float = 0.0
    digest: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types only."""
        return {
            "judge": self.judge,
            "value": self.value,
            "rationale": self.rationale,
            "passed": self.passed,
            "skipped": self.skipped,
            "error": self.error,
            "detail": self.detail,
            "duration_s": self.duration_s,
            "digest": self.digest,
            "asked": dict(self.asked),
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """What one execution cost. Every field is None when unknown; unknown is never zero.

    Attributes:
        cost_usd: US dollars; of recorded replies, what they cost when they were recorded.
        recorded_usd: what of ``cost_usd`` was read from recordings, and is not spent again.
        input_tokens, output_tokens, cache_read_tokens, cache_create_tokens: counts.
        num_turns: turns of the conversation.
        model: the model that answered.
        models_used: all models.
        per_model_usage: model -> ``{input, output, cost_usd}``.
        per_model_turns: model -> turns.
        recordings: keys of the recordings that hold the calls of models; those of other runners
            than ours are not recorded.
    """

    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_create_tokens: int | None = None
    num_turns: int | None = None
    model: str | None = None
    models_used: tuple[str, ...] = ()
    per_model_usage: Mapping[str, Any] = field(default_factory=dict)
    per_model_turns: Mapping[str, int] = field(default_factory=dict)
    recorded_usd: float | None = None
    recordings: tuple[str, ...] = ()

    @property
    def spent_usd(self) -> float | None:
        """US dollars that this session paid."""
        if self.cost_usd is None or self.recorded_usd is None:
            return self.cost_usd
        return max(self.cost_usd - self.recorded_usd, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types only (as far as the values of ``per_model_usage`` are)."""
        return {
            "cost_usd": self.cost_usd,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_create_tokens": self.cache_create_tokens,
            "num_turns": self.num_turns,
            "model": self.model,
            "models_used": list(self.models_used),
            "per_model_usage": dict(self.per_model_usage),
            "per_model_turns": dict(self.per_model_turns),
            "recorded_usd": self.recorded_usd,
            "recordings": list(self.recordings),
        }


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One finished trial: the unit that is stored, sent between processes and aggregated.

    Attributes:
        suite: the suite's key: its eval.yaml relative to the root directory, with slashes.
        case, split, group, tags, category: identity of the case.
        trial: 1-based number of the execution of this case.
        variant: name of the variant, or None.
        status, kind: the outcome and, if it is not ``passed``, whose fault it is.
        reason: one sentence for the outcome; empty when passed.
        execution: the verdict named ``execution``: whether the agent itself worked. None when it
            was never started.
        verdicts: one for each judge of the suite, in the suite's order.
        exit_code, timed_out, duration_s: of the agent; seconds of wall clock.
        usage: tokens and cost of the agent.
        judging_s: seconds of judging.
        started: UTC, ISO 8601.
        workspace: absolute path of the workspace; may have been removed since.
        record: directory of this trial, relative to the run directory, with slashes.
        notes: things worth telling that fail nothing (a skipped symlink, a malformed
            metrics.json).
        case_digest: xxh3_128 over the case's files that the trial depended on.
        execution_digest: xxh3_128 over what decides an execution besides the case; empty when
            unknown. See :func:`~pytest_agent_eval.suite.digests.execution_digest`.
        rescored: judges were asked again about an execution that has a line already: this one
            replaces it, is no further attempt, and its cost is not counted again.
        lasting: of an infrastructure error: it would be the same again, so that it is not retried.
        reward: one number in [0, 1], by the suite's ``reward``; None where there is none.
        reward_reason: why a trial that was judged has no reward; empty where it has one, and where
            the suite has no ``reward``.
    """

    suite: str
    case: str
    split: str
    status: Status
    kind: FailureKind = ""
    reason: str = ""
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None
    trial: int = 1
    variant: str | None = None
    execution: Verdict | None = None
    verdicts: tuple[Verdict, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    duration_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    judging_s: float = 0.0
    started: str = ""
    workspace: str = ""
    record: str = ""
    notes: tuple[str, ...] = ()
    case_digest: str = ""
    execution_digest: str = ""
    rescored: bool = False
    lasting: bool = False
    reward: float | None = None
    reward_reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types only; :meth:`from_dict` reads it back.

        Written by hand because ``dataclasses.asdict`` copies deeply and takes ten times as long,
        once for each stored trial.
        """
        return {
            "suite": self.suite,
            "case": self.case,
            "split": self.split,
            "status": self.status,
            "kind": self.kind,
            "reason": self.reason,
            "group": self.group,
            "tags": dict(self.tags),
            "category": self.category,
            "trial": self.trial,
            "variant": self.variant,
            "execution": None if self.execution is None else self.execution.to_dict(),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "duration_s": self.duration_s,
            "usage": self.usage.to_dict(),
            "judging_s": self.judging_s,
            "started": self.started,
            "workspace": self.workspace,
            "record": self.record,
            "notes": list(self.notes),
            "case_digest": self.case_digest,
            "execution_digest": self.execution_digest,
            "rescored": self.rescored,
            "lasting": self.lasting,
            "reward": self.reward,
            "reward_reason": self.reward_reason,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrialResult:
        """The inverse of :meth:`to_dict`; unknown keys are ignored (written by a newer version).

        Raises:
            KeyError, TypeError: a required key is missing.
        """
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        if known.get("execution") is not None:
            known["execution"] = _rebuild(Verdict, known["execution"])
        known["verdicts"] = tuple(_rebuild(Verdict, item) for item in known.get("verdicts", ()))
        usage = dict(known.get("usage") or {})
        for name in ("models_used", "recordings"):
            usage[name] = tuple(usage.get(name, ()))
        known["usage"] = _rebuild(Usage, usage)
        known["notes"] = tuple(known.get("notes", ()))
        return cls(**known)


def _rebuild(cls: Any, data: Mapping[str, Any]) -> Any:
    return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
