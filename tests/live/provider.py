"""A model provider on this machine that answers from a script.

It speaks as much of the Messages API and of the Responses API as the tools need.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """The model answers with a text."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool; ``text`` is said before it."""

    name: str
    input: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True)
class Refuse:
    """The provider answers with an HTTP status."""

    status: int
    type: str = "api_error"
    message: str = "refused by the script"


Reply = Say | Call | Refuse


@dataclass
class Provider:
    """Serves ``replies`` in order, the last one again and again; a context manager.

    Attributes:
        replies: one for each request that offers tools; others (titles and the like) get a text.
        requests: bodies of all requests so far, with the path under ``_path``.
    """

    replies: Sequence[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> Provider:
        self._lock = threading.Lock()
        self._served = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        with self._lock:
            self.requests.append({**body, "_path": path})
            if not body.get("tools"):
                return Say("ok")
            reply = self.replies[min(self._served, len(self.replies) - 1)]
            self._served += 1
            return reply


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(404, "application/json", b'{"error": {"message": "not found"}}')

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            try:
                body = json.loads(raw or b"{}")
            except ValueError:
                body = {}
            if path.endswith("/count_tokens"):
                self._send(200, "application/json", b'{"input_tokens": 100}')
            elif path.endswith(("/messages", "/responses")):
                self._answer(path, body)
            else:
                self.do_GET()

        def _answer(self, path: str, body: dict[str, Any]) -> None:
            reply = provider.answer(path, body)
            number = len(provider.requests)
            if isinstance(reply, Refuse):
                error = {"type": reply.type, "message": reply.message}
                data = json.dumps({"type": "error", "error": error}).encode()
                self._send(reply.status, "application/json", data)
                return
            make = message_events if path.endswith("/messages") else response_events
            events = list(make(reply, str(body.get("model", "")), number))
            if not body.get("stream"):
                self._send(200, "application/json", json.dumps(_whole(events)).encode())
                return
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
            self._send(200, "text/event-stream", "".join(lines).encode())

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the test's output is not for the server."""

    return Handler


def message_events(reply: Say | Call, model: str, number: int) -> Iterator[Event]:
    """The stream of the Messages API."""
    yield {
        "type": "message_start",
        "message": {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        },
    }
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if reply.text:
        delta = {"type": "text_delta", "text": reply.text}
        blocks.append(({"type": "text", "text": ""}, delta))
    if isinstance(reply, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": reply.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(dict(reply.input))}
        blocks.append((block, delta))
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if isinstance(reply, Call) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 10},
    }
    yield {"type": "message_stop"}


def response_events(reply: Say | Call, model: str, number: int) -> Iterator[Event]:
    """The stream of the Responses API."""
    response = {"id": f"resp_{number}", "object": "response", "model": model}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    items: list[dict[str, Any]] = []
    if reply.text:
        items.append(
            {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{number}",
                "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
            }
        )
    if isinstance(reply, Call):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": reply.name,
                "arguments": json.dumps(dict(reply.input)),
            }
        )
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": done}


def _whole(events: Sequence[Event]) -> Mapping[str, Any]:
    """The answer to a request without streaming."""
    last: Mapping[str, Any] = events[-1].get("response") or {}
    if last:
        return last
    texts = [event["delta"]["text"] for event in events if "text" in event.get("delta", {})]
    content = [{"type": "text", "text": text} for text in texts]
    message: dict[str, Any] = events[0]["message"]
    return {**message, "content": content, "stop_reason": "end_turn"}
