"""``runner.type: litellm``: the agent is a model, with or without a few tools.

It is spoken to in the form of OpenAI's chat completions, which LiteLLM has for all providers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agent_eval.llm import ModelReply, ModelRequest, ToolCall, provider_name
from pytest_agent_eval.runners.base import RunnerContext, Task
from pytest_agent_eval.runners.model_runner import ModelRunner
from pytest_agent_eval.runners.model_talk import Done, Event, Voice, usable_arguments
from pytest_agent_eval.runners.model_tools import tool_descriptions

__all__ = ["PARAMETERS", "LitellmRunner"]

PARAMETERS = ("max_tokens", "seed", "stop", "temperature", "top_p")
"""Settings that are passed on to the model."""


class LitellmRunner(ModelRunner):
    """Asks a model by chat completions.

    ``execution.prompt`` is the user's message, ``runner.system_prompt`` the system message; nothing
    is added to them.
    """

    def __init__(self, context: RunnerContext) -> None:
        super().__init__(context)
        self._parameters = {
            name: self.settings[name] for name in PARAMETERS if self.settings.get(name) is not None
        }
        self._voice = ChatVoice()

    @property
    def voice(self) -> Voice:
        """Of chat completions."""
        return self._voice

    def question(self, task: Task, text: str) -> ModelRequest:
        """The first question of a task."""
        messages = [{"role": "user", "content": text}]
        if task.system_prompt:
            messages.insert(0, {"role": "system", "content": task.system_prompt})
        effort = {"reasoning_effort": task.effort} if task.effort else {}
        return ModelRequest(
            provider_name(task.model),
            tuple(messages),
            tools=tool_descriptions(self.tools_of(task)),
            parameters={**self._parameters, **effort},
            sample=task.trial - 1,
        )


class ChatVoice:
    """Chat completions."""

    def heard(self, reply: ModelReply) -> Iterator[Event | ToolCall]:
        """What the model thought and said, and its calls."""
        if reply.thinking:
            yield {"type": "thinking", "agent": "root", "text": reply.thinking}
        if reply.text:
            refusal = {"refusal": True} if reply.refused else {}
            yield {"type": "message", "agent": "root", "text": reply.text, **refusal}
        yield from reply.tool_calls

    def denied(self, reply: ModelReply) -> Sequence[tuple[str, str]]:
        """No call of this protocol waits for a permission."""
        return ()

    def history(self, reply: ModelReply, done: Done) -> list[Mapping[str, Any]]:
        """The assistant's message, with what its provider wants back, and the results."""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": usable_arguments(call, result)},
            }
            for call, result in done
        ]
        said = {"role": "assistant", "content": reply.text or None, "tool_calls": calls}
        for part in reply.parts:
            said = {**said, **part}
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": result.text}
            for call, result in done
        ]
        return [said, *results]
