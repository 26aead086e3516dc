"""A provider of models on loopback: speaks OpenAI's chat completions, its Responses API, and as
much of Anthropic's messages as thinking takes.

What it answers is decided by the test; that it is asked over real HTTP, by LiteLLM's real code, is
the point of it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pytest_agent_eval.llm import ModelProcess

__all__ = ["Answer", "Provider", "provider", "submit", "text"]


@dataclass(frozen=True)
class Answer:
    """What is sent back: a message of the assistant, or an error when ``status`` is not 200.

    ``end`` is why it stopped: ``length``, ``content_filter``; of the Responses API also ``failed``, with
    ``error`` as its code; of an error its code. ``items`` come before all else that the Responses API
    puts out.
    """

    content: str | None = None
    tool: str = ""
    arguments: str = ""
    status: int = 200
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    tokens: tuple[int, int] = (11, 7)
    end: str = ""
    refusal: str = ""
    thinking: str = ""
    items: tuple[Mapping[str, Any], ...] = ()


Asked = Mapping[str, Any]
_KEPT = ModelProcess()


def text(content: str) -> Answer:
    """Free text."""
    return Answer(content=content)


def submit(asked: Asked, **values: Any) -> Answer:
    """The forced tool call that the request asks for, with these arguments."""
    name = asked["tool_choice"]["function"]["name"]
    return Answer(tool=name, arguments=json.dumps(values))


class Provider:
    """The server, while it runs.

    Attributes:
        asked: the bodies of all requests, in order.
        paths: of all requests.
        headers: of all requests.
    """

    def __init__(self, reply: Callable[[Asked], Answer]) -> None:
        self.reply = reply
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _handler(owner) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with owner._lock:
                    owner.asked.append(asked)
                    owner.headers.append(dict(self.headers))
                    owner.paths.append(self.path)
                answer = owner.reply(asked)
                if answer.before is not None:
                    answer.before()
                form = {"responses": owner._response, "messages": owner._message}
                made = form.get(self.path.rpartition("/")[2], owner._body)
                body = json.dumps(made(asked, answer)).encode()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # who asked has gone
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _body(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        if answer.status != 200:
            return _error(answer)
        message: dict[str, Any] = {"role": "assistant", "content": answer.content}
        if answer.tool:
            function = {"name": answer.tool, "arguments": answer.arguments}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.refusal:
            message["refusal"] = answer.refusal
        given, made = answer.tokens
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": answer.end or ("tool_calls" if answer.tool else "stop"),
                }
            ],
            "usage": {
                "prompt_tokens": given,
                "completion_tokens": made,
                "total_tokens": given + made,
            },
        }

    def _response(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        if answer.status != 200:
            return _error(answer)
        items: list[Mapping[str, Any]] = [*answer.items]
        if answer.thinking:
            summary = [{"type": "summary_text", "text": answer.thinking}]
            thought = {"type": "reasoning", "id": f"rs_{len(self.asked)}", "summary": summary}
            hidden = "reasoning.encrypted_content" in asked.get("include", ())
            items.append({**thought, **({"encrypted_content": "sealed"} if hidden else {})})
        if answer.tool:
            about = {"type": "function_call", "id": f"fc_{len(self.asked)}", "status": "completed"}
            items.append(
                {**about, "call_id": "call_1", "name": answer.tool, "arguments": answer.arguments}
            )
        if answer.content is not None or answer.refusal:
            said: dict[str, Any] = {
                "type": "output_text",
                "text": answer.content,
                "annotations": [],
            }
            said = {"type": "refusal", "refusal": answer.refusal} if answer.refusal else said
            about = {"type": "message", "id": f"msg_{len(self.asked)}", "status": "completed"}
            items.append({**about, "role": "assistant", "content": [said]})
        given, made = answer.tokens
        failed, reason = (
            answer.end == "failed",
            {"length": "max_output_tokens"}.get(answer.end, answer.end),
        )
        return {
            "id": f"resp_{len(self.asked)}",
            "object": "response",
            "created_at": 1,
            "status": (answer.end and ("failed" if failed else "incomplete")) or "completed",
            "error": {"code": answer.error, "message": "it went wrong"} if failed else None,
            "incomplete_details": {"reason": reason} if answer.end and not failed else None,
            "model": asked["model"],
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None
            if failed
            else {
                "input_tokens": given,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": made,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": given + made,
            },
        }

    def _message(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": "signed"})
        if answer.content:
            content.append({"type": "text", "text": answer.content})
        if answer.tool:
            call = {"name": answer.tool, "input": json.loads(answer.arguments)}
            content.append({"type": "tool_use", "id": "toolu_1", **call})
        given, made = answer.tokens
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": content,
            "stop_reason": "tool_use" if answer.tool else "end_turn",
            "usage": {"input_tokens": given, "output_tokens": made},
        }

    def start(self) -> None:
        """Answer from now on."""
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def _error(answer: Answer) -> dict[str, Any]:
    code = answer.end or None
    return {"error": {"message": answer.error or "no", "type": code or "error", "code": code}}


@contextmanager
def provider(reply: Callable[[Asked], Answer]) -> Iterator[Provider]:
    """A provider whose answers a function makes; it is called in several threads at once."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The sessions of these tests, one after another, then have one import of LiteLLM.
        _KEPT.start()
    server = Provider(reply)
    server.start()
    try:
        yield server
    finally:
        server.stop()
