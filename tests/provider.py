"""A provider of models on loopback: speaks the protocol of OpenAI's chat completions.

What it answers is decided by the test; that it is asked over real HTTP, by LiteLLM's real code, is
the point of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Answer", "Provider", "provider", "submit", "text"]


@dataclass(frozen=True)
class Answer:
    """What is sent back: a message of the assistant, or an error when ``status`` is not 200."""

    content: str | None = None
    tool: str = ""
    arguments: str = ""
    status: int = 200
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    tokens: tuple[int, int] = (11, 7)


Asked = Mapping[str, Any]


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
        headers: of all requests.
    """

    def __init__(self, reply: Callable[[Asked], Answer]) -> None:
        self.reply = reply
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
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
                answer = owner.reply(asked)
                if answer.before is not None:
                    answer.before()
                body = json.dumps(owner._body(asked, answer)).encode()
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
            return {"error": {"message": answer.error or "no", "type": "error", "code": None}}
        message: dict[str, Any] = {"role": "assistant", "content": answer.content}
        if answer.tool:
            function = {"name": answer.tool, "arguments": answer.arguments}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
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
                    "finish_reason": "tool_calls" if answer.tool else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": given,
                "completion_tokens": made,
                "total_tokens": given + made,
            },
        }

    def start(self) -> None:
        """Answer from now on."""
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def provider(reply: Callable[[Asked], Answer]) -> Iterator[Provider]:
    """A provider whose answers a function makes; it is called in several threads at once."""
    server = Provider(reply)
    server.start()
    try:
        yield server
    finally:
        server.stop()
