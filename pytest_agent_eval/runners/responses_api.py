"""``runner.type: responses-api``: the agent is a model behind OpenAI's Responses API.

Nothing is kept by the provider (``store: false``): each question holds all that was said before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agent_eval.llm import ModelReply, ModelRequest, ToolCall, provider_name
from pytest_agent_eval.runners.base import RunnerContext, Task
from pytest_agent_eval.runners.model_runner import ModelRunner
from pytest_agent_eval.runners.model_talk import Done, Event, Voice, usable_arguments
from pytest_agent_eval.runners.model_tools import tool_descriptions
from pytest_agent_eval.runners.responses_story import events_of, tool_name

__all__ = ["PARAMETERS", "ResponsesRunner"]

PARAMETERS = (
    *("max_output_tokens", "max_tool_calls", "parallel_tool_calls", "service_tier", "temperature"),
    *("text", "tool_choice", "top_p", "truncation"),
)
"""Settings that are passed on as they are."""

ENCRYPTED = "reasoning.encrypted_content"
_WITHOUT_ID = frozenset({"function_call", "message"})


class ResponsesRunner(ModelRunner):
    """Asks a model by the Responses API.

    ``execution.prompt`` is the user's message, ``runner.system_prompt`` the instructions; nothing
    is added to them. Tools that are mappings are the provider's own and are passed on.
    """

    max_tokens = "max_output_tokens"

    def __init__(self, context: RunnerContext) -> None:
        super().__init__(context)
        self._voice = ResponsesVoice()
        self._parameters: dict[str, Any] = {
            name: self.settings[name] for name in PARAMETERS if self.settings.get(name) is not None
        }
        own = [_function(one) for one in tool_descriptions(self.tools)]
        hosted = [one for one in self.settings.get("tools") or () if isinstance(one, Mapping)]
        self._descriptions = (*own, *hosted)

    @property
    def voice(self) -> Voice:
        """Of the Responses API."""
        return self._voice

    def question(self, task: Task, text: str) -> ModelRequest:
        """The first question of a task."""
        parameters: dict[str, Any] = {"store": False, **self._parameters}
        if task.system_prompt:
            parameters["instructions"] = task.system_prompt
        reasoning = dict(self.settings.get("reasoning") or {})
        if task.effort:
            reasoning["effort"] = task.effort
        if reasoning:
            parameters["reasoning"] = reasoning
        include = self.settings.get("include")
        if include is None and reasoning:
            include = [ENCRYPTED]  # else it has forgotten at each question what it thought
        if include:
            parameters["include"] = list(include)
        return ModelRequest(
            _model(task.model or str(self.settings.get("default_model") or "")),
            ({"role": "user", "content": text},),
            tools=self._descriptions,
            parameters=parameters,
            sample=task.trial - 1,
            protocol="responses",
        )


class ResponsesVoice:
    """The Responses API."""

    def heard(self, reply: ModelReply) -> Iterator[Event | ToolCall]:
        """What each output item says, and the calls of functions."""
        calls = iter(reply.tool_calls)
        for item in reply.parts:
            if item.get("type") == "function_call":
                yield from _next(calls)
            else:
                yield from events_of(item)

    def denied(self, reply: ModelReply) -> Sequence[tuple[str, str]]:
        """Calls of MCP servers that want to be approved."""
        return [
            (str(item.get("id") or ""), tool_name(item))
            for item in reply.parts
            if item.get("type") == "mcp_approval_request"
        ]

    def history(self, reply: ModelReply, done: Done) -> list[Mapping[str, Any]]:
        """All output items, as far as they can be given back, and what came of the calls."""
        calls = iter(done)
        said: list[Mapping[str, Any]] = []
        results: list[Mapping[str, Any]] = []
        for item in reply.parts:
            kind = item.get("type")
            if kind == "reasoning" and not item.get("encrypted_content"):
                continue  # the provider has kept nothing that its id would stand for
            given = {key: value for key, value in item.items() if key != "status"}
            if kind in _WITHOUT_ID:
                given.pop("id", None)
            if kind == "function_call":
                call, result = next(calls)
                given |= {"call_id": call.id, "arguments": usable_arguments(call, result)}
                output = {"call_id": call.id, "output": result.text}
                results.append({"type": "function_call_output", **output})
            said.append(given if kind in (*_WITHOUT_ID, "reasoning") else item)
        for name, _ in self.denied(reply):
            answer = {"approval_request_id": name, "approve": False}
            results.append({"type": "mcp_approval_response", **answer})
        return [*said, *results]


def _model(name: str) -> str:
    """With its provider: OpenAI, whose protocol it is, where nothing tells of another one."""
    found = provider_name(name)
    return found if not found or "/" in found else f"openai/{found}"


def _function(described: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in the form of this protocol."""
    return {"type": "function", **described["function"], "strict": False}


def _next(calls: Iterator[ToolCall]) -> Iterator[ToolCall]:
    for call in calls:
        yield call
        return
