"""``judges``: functions of a trial's record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from pytest_agent_eval.suite.known import PAIRWISE, Known
from pytest_agent_eval.suite.models.base import (
    Amount,
    Block,
    Items,
    NonEmpty,
    PathText,
    ScoreRange,
    Seconds,
    block_field,
)
from pytest_agent_eval.suite.models.runner import RunnerConfig

__all__ = ["LLM_KEYS", "AgentConfig", "ExamplesConfig", "JudgeConfig", "kinds_set"]

LLM_KEYS = ("llm_rubric", "prompt", "prompt_file")
"""Keys of the LLM kind; the first that is set is the question."""
_KIND_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("builtin", ("builtin",)),
    ("check", ("check",)),
    ("agent", ("agent",)),
    ("llm", LLM_KEYS),
    ("function", ("module", "function")),
)


def kinds_set(values: Mapping[str, Any], plugin_kinds: frozenset[str]) -> tuple[str, ...]:
    """The kinds whose keys are set, the deciding one first; an empty text is not set."""
    own = [
        kind for kind, keys in _KIND_KEYS if any(values.get(key) not in (None, "") for key in keys)
    ]
    plugins = [kind for kind in values if kind in plugin_kinds and values[kind] is not None]
    return (*own, *plugins)


def _runner(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


class AgentConfig(Block):
    """The second agent of an agent judge."""

    runner: Annotated[
        RunnerConfig, BeforeValidator(_runner, json_schema_input_type=str | RunnerConfig)
    ] = block_field(RunnerConfig, "The judge's own runner; a text is its `type`.")
    allowed_tools: Items[NonEmpty] = Field(
        ("Read", "Grep", "Glob"), description="Tools the judging agent may use."
    )
    context: Items[PathText] = Field(
        (), description="Files and directories put under `.context/`, by their last name."
    )
    inputs: Items[PathText] = Field(
        (), description="Output directories and files to show the judge; empty: all."
    )
    timeout: Seconds = Field(600.0, description="Seconds of wall clock of one judgement.")
    max_budget_usd: Amount = Field(2.0, description="Cap of one judgement, US dollars.")


class ExamplesConfig(Block):
    """Human-scored cases put before the question of an LLM judge."""

    source: PathText = Field(description="YAML file of scored cases.")
    count: Annotated[int, Field(ge=1)] | None = Field(None, description="How many; default: all.")
    mix: Any = Field(None, description="How values are mixed.")


class JudgeConfig(Block):
    """One judge. The key that is set decides its kind."""

    name: NonEmpty = Field(
        description="Unique; `pairwise` compares two runs, `execution` is reserved."
    )
    description: str = Field("", description="For people.")
    arguments: Mapping[str, Any] = Field(
        default_factory=dict,
        description="Keyword arguments of Python judges, `{{ arguments }}` of LLM judges.",
    )
    if_: NonEmpty | None = Field(
        None, alias="if", description="Condition; where it is false the verdict is skipped."
    )
    step: NonEmpty | None = Field(None, description="Id of the step whose record is judged.")
    builtin: str = Field(
        "", description="Builtin judge: `name` or `category/name`; excludes every other kind."
    )
    check: str = Field(
        "",
        description="Body of a Python function of `outputs` and `arguments`; returns a value, or "
        "`(value, rationale)`.",
    )
    module: str = Field("", description="Python module of `function`.")
    function: str = Field("", description="Function in `module`.")
    llm_rubric: str = Field("", description="Criterion that a model judges by.")
    prompt: str = Field("", description="Prompt template for a model.")
    prompt_file: PathText | None = Field(None, description="File that holds the prompt template.")
    context: Items[PathText] = Field((), description="Files appended to the prompt.")
    model: NonEmpty | None = Field(None, description="Model; default: `models.judge`.")
    temperature: Amount | None = Field(None, description="Sampling temperature of the model.")
    samples: Annotated[int, Field(ge=1)] = Field(
        1, description="Judgements per trial of LLM and agent judges: median, or majority."
    )
    agent: AgentConfig | None = Field(None, description="A second agent that judges.")
    examples: ExamplesConfig | None = Field(
        None, description="Scored cases put before the question."
    )
    labels: PathText | None = Field(
        None, description="YAML file of human values by case, to calibrate the judge with."
    )
    timeout: Seconds | None = Field(
        None,
        description="Seconds of one judgement, all samples. Default: 60 for Python, 120 for model "
        "calls; of an agent, as long as `agent.timeout` allows.",
    )
    feedback_type: Literal["bool", "int", "float"] | None = Field(
        None, description="Type of the value; `bool` excludes `score_range`."
    )
    score_range: ScoreRange | None = Field(
        None, description="`[min, max]`; a value outside is a judge error."
    )
    pass_if: NonEmpty | None = Field(
        None, description='Condition over `value`, such as `"value >= 4"`: makes a number assert.'
    )

    _plugin: tuple[str, Any] | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _take_plugin_kind(
        cls, data: Any, handler: ModelWrapValidatorHandler[JudgeConfig], info: ValidationInfo
    ) -> JudgeConfig:
        """Keep the keys of plugin kinds apart; what they mean is the plugin's business."""
        known = info.context
        if not isinstance(known, Known) or not known.judge_kinds or not isinstance(data, dict):
            return handler(data)
        taken = {key: data[key] for key in data if key in known.judge_kinds}
        judge = handler({key: value for key, value in data.items() if key not in taken})
        judge._plugin = next(
            ((key, value) for key, value in taken.items() if value is not None), None
        )
        return judge

    @property
    def kind(self) -> str:
        """``builtin``, ``check``, ``agent``, ``llm``, ``function``, ``pairwise``, or a plugin's."""
        if self.name == PAIRWISE:
            return PAIRWISE
        for kind, keys in _KIND_KEYS:
            if any(getattr(self, key) not in (None, "") for key in keys):
                return kind
        return self._plugin[0] if self._plugin else ""

    @property
    def extra(self) -> Any:
        """The value of the key of a plugin's kind."""
        return self._plugin[1] if self._plugin else None
