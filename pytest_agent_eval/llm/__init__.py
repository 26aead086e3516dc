"""Models: every call goes through one gateway, live or recorded.

The only room that imports litellm, and only for a call that no recording answers.
"""

from __future__ import annotations

from pytest_agent_eval.llm.gateway import Answered, Gateway, Mode
from pytest_agent_eval.llm.names import provider_name
from pytest_agent_eval.llm.request import AnswerForm, ModelReply, ModelRequest, ToolCall

__all__ = [
    "AnswerForm",
    "Answered",
    "Gateway",
    "Mode",
    "ModelReply",
    "ModelRequest",
    "ToolCall",
    "provider_name",
]
