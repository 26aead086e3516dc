"""The agent's own tests: its parts, without any workspace or suite."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from agent.intents import read_intent
from agent.message import Message, Order
from agent.workspace import answer

HERE = Path(__file__).parent
CASES = HERE.parent / "evals" / "cases"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I would like a refund.", "refund"),
        ("I would not like a refund.", "information"),
        ("I nearly asked for a refund.", "information"),
        ("How long do I have for a refund?", "information"),
        ("Please cancel it.", "cancel"),
        ("Another shop had to go to the small claims court.", "information"),
        ("I want a refund, and my hand was burned.", "escalate"),
    ],
)
def test_what_is_denied_imagined_or_told_of_others_is_no_request(text: str, action: str) -> None:
    """Only what a customer asks for, here and now, counts."""
    message = Message(sender="A", text=text, received=date(2025, 3, 1))
    assert read_intent(message.sentences).action == action


def test_the_order_named_in_the_sentence_wins() -> None:
    """Two orders are told apart by the sentence that asks."""
    orders = (Order("HL-10001"), Order("HL-10002"))
    message = Message("A", "HL-10001 came. Cancel HL 10002.", date(2025, 3, 1), orders)
    assert message.order_for("Cancel HL 10002.") == orders[1]
    assert message.order_for("Cancel it.") is None


def test_an_order_that_is_not_the_customers_is_not_taken_over() -> None:
    """A number that the shop has not on file for this customer is no order."""
    message = Message("A", "It is about HL-99999.", date(2025, 3, 1), ())
    assert message.order_for("It is about HL-99999.") is None


def test_a_workspace_is_answered(tmp_path: Path) -> None:
    """All four files of the output are there and agree."""
    case = CASES / "changed-mind-bowl-refund"
    for name in ("input.yaml", "orders.yaml"):
        shutil.copy(case / name, tmp_path)
    shutil.copytree(HERE.parent / "evals" / "policies", tmp_path / "policies")
    answer(str(tmp_path))
    decision = json.loads((tmp_path / "output" / "decision.json").read_text(encoding="utf-8"))
    assert (decision["action"], decision["order_id"]) == ("refund", "HL-40120")
    events = (tmp_path / "output" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(events[-1])["type"] == "message"


def test_without_policies_a_person_is_asked(tmp_path: Path) -> None:
    """An agent that cannot read the rules does not decide."""
    case = CASES / "changed-mind-bowl-refund"
    for name in ("input.yaml", "orders.yaml"):
        shutil.copy(case / name, tmp_path)
    answer(str(tmp_path))
    decision = json.loads((tmp_path / "output" / "decision.json").read_text(encoding="utf-8"))
    assert decision["action"] == "escalate"
