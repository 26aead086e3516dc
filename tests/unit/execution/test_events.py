from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.execution.events import (
    EVENT_TYPES,
    conversation,
    event_of,
    has_messages,
    last_message,
    read_events,
    tool_calls,
)

EVENTS: list[dict[str, Any]] = [
    {"type": "thinking", "agent": "root", "text": "hm"},
    {"type": "message", "agent": "root", "text": "I look."},
    {"type": "tool_call", "agent": "root", "id": "1", "name": "Read", "input": {"path": "a"}},
    {"type": "tool_call", "agent": "sub", "id": "2", "name": "Grep", "input": {}},
    {"type": "tool_result", "agent": "sub", "id": "2", "text": "no", "is_error": True},
    {"type": "tool_result", "agent": "root", "id": "1", "text": "content"},
    {"type": "tool_result", "agent": "root", "id": "unknown", "text": "stray"},
    {"type": "message", "agent": "sub", "text": "a word of the helper"},
    {"type": "message", "agent": "root", "text": ""},
    {"type": "message", "agent": "root", "text": "Done."},
    {"type": "message", "agent": "root"},
    {"type": "result"},
]


def test_conversation_is_what_the_root_agent_said() -> None:
    assert conversation(EVENTS) == "I look.\n\nDone."
    assert conversation(EVENTS, thinking=True) == "hm\n\nI look.\n\nDone."
    assert last_message(EVENTS) == "Done."
    assert has_messages(EVENTS)


def test_without_messages() -> None:
    events = [event for event in EVENTS if event["type"] != "message"]
    assert not has_messages(events)
    assert last_message(events) == conversation(events) == ""


def test_calls_have_their_results() -> None:
    assert tool_calls(EVENTS) == [
        {
            "name": "Read",
            "input": {"path": "a"},
            "result": "content",
            "is_error": False,
            "agent": "root",
        },
        {"name": "Grep", "input": {}, "result": "no", "is_error": True, "agent": "sub"},
    ]


def test_patterns_keep_calls() -> None:
    assert [call["name"] for call in tool_calls(EVENTS, ["Rea"])] == ["Read"]
    assert [call["name"] for call in tool_calls(EVENTS, ["G*p"])] == ["Grep"]
    assert tool_calls(EVENTS, ["Write"]) == []


def test_a_call_without_id_gets_the_next_result_without_id() -> None:
    events: list[dict[str, Any]] = [
        {"type": "tool_call", "name": "a"},
        {"type": "tool_result", "result": 3},
    ]
    assert tool_calls(events)[0]["result"] == 3


def test_unknown_forms_are_kept_as_other() -> None:
    assert event_of({"type": "ping", "x": 1}) == {"type": "other", "raw": {"type": "ping", "x": 1}}
    assert event_of("text") == {"type": "other", "raw": "text"}
    assert event_of({"type": "message", "text": 3})["type"] == "other"
    assert event_of({"type": ["message"]})["type"] == "other"
    assert event_of({"type": "message", "text": "x"})["agent"] == "root"


def test_lines_that_are_no_objects_are_a_note() -> None:
    data = b'\xef\xbb\xbf{"type": "message", "text": "a"}\r\n\n[1]\n{"ty\n' + b"\xff\n" * 5
    events, notes = read_events(data)
    assert [event["text"] for event in events] == ["a"]
    assert notes == ["events.jsonl: lines 3, 4, 5, 6, 7 and 2 more: no JSON object, ignored"]
    assert read_events(b"x")[1] == ["events.jsonl: line 1: no JSON object, ignored"]


@given(st.binary(max_size=300))
def test_no_bytes_are_a_crash(data: bytes) -> None:
    events, _ = read_events(data)
    assert all(event["type"] in EVENT_TYPES for event in events)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(sorted(EVENT_TYPES)),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "text", "name", "input", "id", "agent"]), inner
            )
        ),
        max_leaves=8,
    )
)
def test_every_event_can_be_stored_and_read(raw: object) -> None:
    event = event_of(raw)
    text = json.dumps(event, allow_nan=False)
    assert read_events(text.encode())[1] == []
    calls = tool_calls([event])
    assert len(calls) <= 1
    conversation([event], thinking=True)
    last_message([event])
