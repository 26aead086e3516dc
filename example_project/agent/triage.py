"""Which desk a message goes to; in process and asynchronous, as a service would have it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date
from typing import Any

from agent.intents import read_intent
from agent.message import Message

DESKS = {
    "refund": "accounts",
    "cancel": "accounts",
    "replacement": "packing",
    "escalate": "owner",
    "information": "counter",
}


class Triage:
    """Sorts messages onto desks. One object serves many messages at once."""

    def __init__(self, desks: Mapping[str, str] = DESKS) -> None:
        self._desks = dict(desks)

    async def sort(self, text: str) -> dict[str, Any]:
        """The desk for a message, and whether the owner has to be told today."""
        await asyncio.sleep(0)  # where a service would wait for its model
        message = Message(sender="", text=text, received=date.min)
        intent = read_intent(message.sentences)
        return {"desk": self._desks[intent.action], "today": intent.action == "escalate"}
