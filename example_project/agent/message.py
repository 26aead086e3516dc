"""A customer's message and the orders that the shop has on file for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

ORDER_ID = re.compile(r"\bHL[- ]?(\d{5})\b", re.IGNORECASE)
SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")


class Order(NamedTuple):
    """One order; dates are None until the thing has happened."""

    id: str
    items: tuple[str, ...] = ()
    placed: date | None = None
    dispatched: date | None = None
    delivered: date | None = None
    made_to_order: bool = False
    event: date | None = None
    payments_taken: int = 1


class Message(NamedTuple):
    """What came in, and which orders it may be about."""

    sender: str
    text: str
    received: date
    orders: tuple[Order, ...] = ()

    @property
    def first_name(self) -> str:
        """The first word of the sender. Wrong for "Surname, Name"; nobody has got round to it."""
        return re.split(r"[\s,]+", self.sender.strip())[0] or "customer"

    @property
    def sentences(self) -> list[str]:
        """The text in sentences, each with its closing mark."""
        joined = re.sub(r"(?<!\n)\n(?!\n)", " ", self.text)
        return [
            found.group().strip() for found in SENTENCE.finditer(joined) if found.group().strip()
        ]

    def order_for(self, sentence: str) -> Order | None:
        """The order a sentence is about: named there, else named alone, else the only one."""
        known = {order.id: order for order in self.orders}
        for text in (sentence, self.text):
            named = {f"HL-{number}" for number in ORDER_ID.findall(text)} & known.keys()
            if len(named) == 1:
                return known[named.pop()]
        return self.orders[0] if len(self.orders) == 1 else None


def read_message(data: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> Message:
    """The message of a parsed ``input.yaml`` and ``orders.yaml``."""
    return Message(
        sender=str(data["from"]),
        text=str(data["message"]),
        received=date.fromisoformat(str(data["received"])),
        orders=tuple(_order(entry) for entry in orders),
    )


def _order(entry: Mapping[str, Any]) -> Order:
    def day(key: str) -> date | None:
        return date.fromisoformat(str(entry[key])) if entry.get(key) else None

    return Order(
        id=str(entry["id"]),
        items=tuple(entry.get("items", ())),
        placed=day("placed"),
        dispatched=day("dispatched"),
        delivered=day("delivered"),
        made_to_order=bool(entry.get("made_to_order", False)),
        event=day("event"),
        payments_taken=int(entry.get("payments_taken", 1)),
    )
