"""From what is asked to what is done, by the shop's policies."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from agent.intents import read_intent
from agent.message import Message, Order
from agent.policies import Policies


class Decision(NamedTuple):
    """What the agent does about a message.

    Attributes:
        action: refund, replacement, cancel, escalate or information.
        asked: what the customer asked for, before any policy.
        order: the order it is about, or None when that is not clear.
        confidence: in [0, 1].
        files: the policy pages it rests on.
        why: one sentence for the colleague who reads the log.
    """

    action: str
    asked: str
    order: Order | None
    confidence: float
    files: tuple[str, ...]
    why: str


def decide(message: Message, policies: Policies) -> Decision:
    """Read the message, read the policies it leads to, and settle on one action."""
    intent = read_intent(message.sentences)
    order = message.order_for(intent.sentence)
    files = policies.choose(intent.action, message.text)
    action, why = intent.action, f"the customer asks for {intent.action}"
    if not files:
        action, why = "escalate", "no policy page could be read"
    elif intent.action == "refund":
        action, why = _refund(message, order, policies, files)
    elif intent.action == "replacement":
        action, why = _replacement(message, order, policies)
    elif intent.action == "cancel":
        action, why = _cancel(message, order, policies, files)
    if action == "escalate" and "policies/escalation.md" not in files:
        files.append("policies/escalation.md")
    for file in files:
        policies.page(file)
    return Decision(action, intent.action, order, intent.confidence, tuple(files), why)


def _refund(
    message: Message, order: Order | None, policies: Policies, files: list[str]
) -> tuple[str, str]:
    if order is None:
        return "refund", "a refund is asked for; which order is not clear yet"
    if order.made_to_order:
        _add(files, "policies/commissions.md")
        if not policies.front_matter("policies/commissions.md").get("returnable", True):
            return "escalate", "a commission is not returnable without a person's word"
    if order.payments_taken > 1:
        _add(files, "policies/payment.md")
        return "refund", "the payment was taken more than once"
    window = policies.front_matter("policies/returns.md").get("window_days", 0)
    if order.delivered and _days(order.delivered, message.received) > window:
        return "escalate", f"delivered more than {window} days ago"
    return "refund", f"delivered within {window} days"


def _replacement(message: Message, order: Order | None, policies: Policies) -> tuple[str, str]:
    window = policies.front_matter("policies/faults.md").get("report_within_days", 0)
    if order and order.delivered and _days(order.delivered, message.received) > window:
        return "escalate", f"reported more than {window} days after delivery"
    return "replacement", "a faulty or wrong piece, reported in time"


def _cancel(
    message: Message, order: Order | None, policies: Policies, files: list[str]
) -> tuple[str, str]:
    if order and order.event:
        _add(files, "policies/workshops.md")
        notice = policies.front_matter("policies/workshops.md").get("notice_days", 0)
        if _days(message.received, order.event) < notice:
            return "information", f"fewer than {notice} days before the workshop"
        return "cancel", "the seat is given up in time"
    if order and order.dispatched:
        return "information", "the order is on its way"
    return "cancel", "the order has not been dispatched"


def _add(files: list[str], file: str) -> None:
    if file not in files:
        files.append(file)


def _days(start: date, end: date) -> int:
    return (end - start).days
