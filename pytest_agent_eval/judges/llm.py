"""LLM judges: a model is asked for a verdict in a form, and never passes by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_agent_eval.judges.answer import Answer, read_verdict, sampled
from pytest_agent_eval.judges.base import JudgeContext
from pytest_agent_eval.judges.bound import MODEL_TIMEOUT
from pytest_agent_eval.judges.prompt import JudgePrompt
from pytest_agent_eval.judges.question import (
    FRAMING,
    UNTOLD,
    judge_prompt,
    judging_model,
    own_question,
    read_named,
    scale_sentence,
)
from pytest_agent_eval.judges.verdict import error_verdict
from pytest_agent_eval.llm import AnswerForm, Gateway, ModelReply, ModelRequest, provider_name
from pytest_agent_eval.llm.errors import ModelError, NoAnswer
from pytest_agent_eval.results import Verdict

__all__ = ["LlmJudge", "make_llm", "make_llm_builtin"]

_SHARE = 0.95
"""Of the judge's time that its calls may take, so that the message is theirs."""

_FEW = 25
"""Whole numbers of a range that are listed."""

_SYSTEM = f"""\
{FRAMING}
{{scale}}
First write the rationale: two sentences at most, on what in the material decides. Then the
verdict."""


def make_llm(context: JudgeContext) -> LlmJudge:
    """The judge of an entry with ``llm_rubric``, ``prompt`` or ``prompt_file``.

    Raises:
        SuiteError: no model, a file that cannot be read, a template that cannot be parsed.
    """
    prompt = own_question(context)
    assert prompt is not None
    return _make(context, prompt)


def make_llm_builtin(context: JudgeContext, path: str) -> LlmJudge:
    """The judge of a builtin file that holds a prompt; its verdict is a boolean.

    Raises:
        SuiteError: as :func:`make_llm`.
    """
    source = read_named(context, path, "builtin")
    return _make(context, judge_prompt(context, source, "builtin", rubric=True), boolean=True)


def _make(context: JudgeContext, prompt: JudgePrompt, *, boolean: bool = False) -> LlmJudge:
    config = context.config
    return LlmJudge(
        config.name,
        prompt,
        context.gateway or Gateway(context.suite.directory),
        model=provider_name(judging_model(context)),
        kind="bool" if boolean else config.feedback_type or "float",
        score_range=config.score_range,
        samples=config.samples,
        temperature=config.temperature,
        timeout=config.timeout or MODEL_TIMEOUT,
    )


class LlmJudge:
    """Asks a model for a verdict on a record.

    Args:
        name: the judge's.
        prompt: its question.
        gateway: by which the model is asked.
        model: ``provider/model``.
        kind: of the value: ``bool``, ``int`` or ``float``.
        score_range: lowest and highest value; None: it is told ``[1, 5]``, which is not enforced.
        samples: times it is asked; the median counts, or the majority.
        temperature: of the model; None for its own.
        timeout: seconds for all of it.
    """

    asks_a_model = True

    def __init__(
        self,
        name: str,
        prompt: JudgePrompt,
        gateway: Gateway,
        *,
        model: str,
        kind: str,
        score_range: Sequence[float] | None = None,
        samples: int = 1,
        temperature: float | None = None,
        timeout: float = MODEL_TIMEOUT,
    ) -> None:
        self._name = name
        self._prompt = prompt
        self._gateway = gateway
        self._model = model
        self._kind = kind
        self._samples = samples
        self._timeout = timeout
        self._form = _form(kind, score_range)
        self._system = _SYSTEM.format(scale=scale_sentence(kind, score_range))
        self._parameters = {} if temperature is None else {"temperature": temperature}

    def __call__(self, record: Mapping[str, Any]) -> Verdict:
        """The verdict on one record; a model that cannot be asked is a judge error."""
        messages = (
            {"role": "system", "content": self._system},
            {"role": "user", "content": self._prompt.render(record)},
        )
        asker = f"case {record['case']}, judge {self._name}"
        answers: list[Answer] = []
        replies: list[ModelReply] = []
        for sample in range(self._samples):
            request = ModelRequest(
                self._model, messages, self._form, parameters=self._parameters, sample=sample
            )
            try:
                answered = self._gateway.answer(
                    request,
                    lambda found: read_verdict(found, self._kind),
                    asker=asker,
                    timeout=self._timeout * _SHARE / self._samples,
                )
            except ModelError as error:
                raw = ""
                if isinstance(error, NoAnswer):
                    raw = error.raw
                    replies += error.replies
                verdict = error_verdict(self._name, str(error), detail=raw)
                return replace(verdict, asked=_asked(replies)) if replies else verdict
            answers.append(answered.value)
            replies += answered.replies
        return _verdict(self._name, answers, replies)


def _form(kind: str, score_range: Sequence[float] | None) -> AnswerForm:
    rationale = {"type": "string", "description": "What in the material decides, briefly."}
    if kind == "bool":
        passed = {"type": "boolean", "description": "Whether the criterion is met."}
        properties, name = {"rationale": rationale, "passed": passed}, "submit_evaluation"
    else:
        low, high = score_range or UNTOLD
        score: dict[str, Any] = {
            "type": "integer" if kind == "int" else "number",
            "description": f"From {low:g} to {high:g}.",
        }
        if score_range is not None:  # what is not declared is not enforced
            # Servers that enforce a schema know lists of values; bounds are known by fewer.
            few = kind == "int" and high - low < _FEW
            score |= (
                {"enum": [*range(int(low), int(high) + 1)]}
                if few
                else {"minimum": low, "maximum": high}
            )
        properties, name = {"rationale": rationale, "score": score}, "submit_score"
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return AnswerForm(name, "Submit the verdict.", schema)


def _verdict(name: str, answers: Sequence[Answer], replies: Sequence[ModelReply]) -> Verdict:
    """One verdict of all samples."""
    found = sampled(answers)
    return Verdict(name, found.value, found.rationale, asked={**_asked(replies), **found.spread})


def _asked(replies: Sequence[ModelReply]) -> dict[str, Any]:
    return {
        "model": replies[-1].model,
        "calls": len(replies),
        "recorded": sum(reply.recorded for reply in replies),
        "recordings": [key for reply in replies for key in reply.usage.recordings],
        **_totals(replies),
    }


def _totals(replies: Sequence[ModelReply]) -> dict[str, Any]:
    """Tokens of all calls and US dollars of those that were made now; None: unknown."""
    totals: dict[str, Any] = {}
    for key, counted in (
        ("cost_usd", [reply for reply in replies if not reply.recorded]),
        ("input_tokens", replies),
        ("output_tokens", replies),
    ):
        found = [getattr(reply.usage, key) for reply in counted]
        totals[key] = None if None in found else sum(found)
    return totals
