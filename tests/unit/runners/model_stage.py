"""A suite whose agent is a model that a provider on loopback plays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pytest_agent_eval.llm import Gateway, Mode, ModelProcess
from pytest_agent_eval.runners import BUILTIN, Execution, Runner, RunnerContext
from pytest_agent_eval.suite import load_suite
from tests.provider import Answer, Provider

__all__ = ["Stage", "use", "without_time"]


def use(tool: str, **arguments: Any) -> Answer:
    return Answer(tool=tool, arguments=json.dumps(arguments))


class Stage:
    """A suite whose agent is a model, and the provider that plays it."""

    def __init__(
        self, directory: Path, server: Provider, models: ModelProcess, kind: str = "litellm"
    ) -> None:
        self.kind = kind
        self.directory = directory
        self.server = server
        self.models = models
        self.evals = directory / "project" / "evals"
        (self.evals / "cases").mkdir(parents=True)

    def script(self, *answers: Answer) -> None:
        """What the model says, one time after the other, and the last one from then on."""
        left = list(answers)
        self.server.reply = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def runner(self, tools: list[Any] | None = None, mode: Mode = "live", **runner: Any) -> Runner:
        settings = {**runner.pop("settings", {}), **({"tools": tools} if tools else {})}
        asked = runner.pop("config", {"prompt": "x"})
        block = {"type": self.kind, "settings": settings, **runner}
        config = {"dataset": {"path": "cases"}, "runner": block, "execution": asked}
        (self.evals / "eval.yaml").write_text(yaml.safe_dump(config))
        suite = load_suite(self.evals / "eval.yaml", rootdir=self.evals.parent)
        gateway = Gateway(suite.directory, mode=mode, api_base=self.server.url, process=self.models)
        context = RunnerContext(suite=suite, rootdir=self.evals.parent, gateway=gateway)
        return BUILTIN[self.kind](context)

    def told(self) -> list[str]:
        """What the model was told by its tools, in the last question."""
        asked = self.server.asked[-1]
        if self.kind == "responses-api":
            items = [one for one in asked["input"] if one.get("type") == "function_call_output"]
            return [one["output"] for one in items]
        return [one["content"] for one in asked["messages"] if one["role"] == "tool"]


def without_time(execution: Execution) -> Mapping[str, Any]:
    return {
        name: getattr(execution, name)
        for name in Execution.__dataclass_fields__
        if name not in ("duration_s", "recorded", "paid_usd")
    }
