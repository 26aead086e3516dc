"""The answer to the customer: a greeting, what happens now, what the policies say."""

from __future__ import annotations

from agent.decide import Decision
from agent.message import Message
from agent.policies import Policies

OPENINGS = {
    "refund": "We have noted that you would like a refund{order}, and we will arrange it.",
    "replacement": "We are sorry about that; we will send the piece again at no cost{order}.",
    "cancel": "That is done: nothing more happens on our side{order}, and nothing is charged.",
    "escalate": "Thank you for telling us{order}. A colleague will answer you in person.",
    "information": "Thank you for writing{order}. Here is what we can tell you.",
}
ABOUT = {"escalate": " about", "information": " about"}


def write_reply(message: Message, decision: Decision, policies: Policies) -> str:
    """The reply as Markdown; always names the order when it is known, else asks for it."""
    about = ABOUT.get(decision.action, " for")
    order = f"{about} {decision.order.id}" if decision.order else ""
    paragraphs = [
        f"Dear {message.first_name},",
        OPENINGS[decision.action].format(order=order),
    ]
    if decision.action == "escalate":
        hours = policies.front_matter("policies/escalation.md").get("answer_within_hours", 4)
        paragraphs.append(f"You will hear from them within {hours} working hours.")
    else:
        paragraphs.append(" ".join(policies.best_lines(list(decision.files), message.text, 2)))
    if decision.order is None and message.orders:
        paragraphs.append(
            "Could you send us the order number? It starts with HL and is on the slip."
        )
    paragraphs.append("Kind regards,\nHarbour Lane Ceramics")
    return "\n\n".join(part for part in paragraphs if part) + "\n"
