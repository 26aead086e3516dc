"""The files of one workspace: read the message, leave the answer and what it took."""

from __future__ import annotations

import json
import os
from typing import Any

import yaml

from agent.decide import Decision, decide
from agent.message import Message, read_message
from agent.policies import LOADER, Policies
from agent.reply import write_reply

MODEL = "harbour-lane-rules-3"
USD_PER_TOKEN = 0.000_002


def answer(workspace: str) -> None:
    """Answer the message in a workspace and write ``output/`` there."""
    message = read_message(
        _load(os.path.join(workspace, "input.yaml")),
        _load(os.path.join(workspace, "orders.yaml")).get("orders") or [],
    )
    policies = Policies(workspace)
    decision = decide(message, policies)
    reply = write_reply(message, decision, policies)
    output = os.path.join(workspace, "output")
    os.makedirs(output, exist_ok=True)
    _write(os.path.join(output, "decision.json"), json.dumps(_decision(decision), indent=2) + "\n")
    _write(os.path.join(output, "reply.md"), reply)
    _write(os.path.join(output, "events.jsonl"), _events(policies, reply))
    _write(os.path.join(output, "metrics.json"), json.dumps(_metrics(message, policies, reply)))
    print(f"{decision.action}: {decision.why}")


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "action": decision.action,
        "order_id": decision.order.id if decision.order else None,
        "confidence": decision.confidence,
        "because": decision.why,
    }


def _events(policies: Policies, reply: str) -> str:
    events: list[dict[str, Any]] = []
    for number, call in enumerate(policies.calls, start=1):
        name, call_id = {"name": "Read"}, f"call-{number}"
        read = {"input": {"file_path": call["file"]}, "id": call_id, "agent": "root"}
        result = {"text": call["result"], "is_error": call["is_error"], "id": call_id}
        events.append({"type": "tool_call", **name, **read})
        events.append({"type": "tool_result", **name, **result, "agent": "root"})
    events.append({"type": "message", "agent": "root", "text": reply})
    return "".join(json.dumps(event) + "\n" for event in events)


def _metrics(message: Message, policies: Policies, reply: str) -> dict[str, Any]:
    """What a model of this size would have used, at about four characters a token."""
    read = len(message.text) + sum(len(text) for text in policies.read.values())
    tokens = {"input": read // 4, "output": len(reply) // 4}
    cost = round(sum(tokens.values()) * USD_PER_TOKEN, 6)
    turns = len(policies.calls) + 1
    return {"token_usage": tokens, "cost_usd": cost, "num_turns": turns, "model": MODEL}


def _load(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as handle:
        loaded = yaml.load(handle, Loader=LOADER)
    return loaded if isinstance(loaded, dict) else {}


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
