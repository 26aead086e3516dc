from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import CaseError
from pytest_agent_eval.execution.leaks import Leak, find_leaks, with_leaks
from pytest_agent_eval.execution.phrases import Phrase, Searched, phrases_of
from pytest_agent_eval.results import Verdict
from tests.unit.execution.execution_bench import Bench

ANSWERS = ("expected", "answer", "items.gold")

LONG = (
    "The reply must not promise a refund, since the warranty ended \"in May\"; it's the customer's "
    "own fault, see C:\\notes\\new, and the café clerk – überfordert – said as much to the manager "
    "on the telephone before the letter had been written at all."
)
STYLES = {
    "plain": "notes:\n  reviewer: Dana thinks clause 17b settles it\n",
    "plain over lines": "notes:\n  reviewer: Dana thinks\n    clause 17b\n    settles it\n",
    "double quotes": 'notes: {reviewer: "Dana thinks clause 17b settles it"}\n',
    "single quotes": "notes:\n  reviewer: 'Dana thinks clause 17b settles it'\n",
    "literal": "notes:\n  reviewer: |\n    Dana thinks\n    clause 17b\n    settles it\n",
    "folded": "notes:\n  reviewer: >-\n    Dana thinks clause\n    17b settles it\n",
    "escapes": 'notes:\n  reviewer: "Dana thinks \\\n    clause 17b\\n settles it"\n',
    "long": yaml.safe_dump({"notes": {"reviewer": LONG}}, width=60),
    "long in ascii": yaml.safe_dump({"notes": {"reviewer": LONG}}, default_style='"'),
    "long in unicode": yaml.safe_dump({"notes": {"reviewer": LONG}}, allow_unicode=True, width=50),
    "long in single quotes": yaml.safe_dump(
        {"notes": {"reviewer": LONG}}, allow_unicode=True, default_style="'"
    ),
    "long literal": "notes:\n  reviewer: |\n" + "".join(f"    {w}\n" for w in LONG.split()),
}
AGENTS = {
    "cat": "cat {}",
    "cat -n": "cat -n {}",
    "as a quotation": "sed 's/^/> /' {}",
    "to stderr": "cat {} >&2",
    "copied": "cp {} output/found.yaml",
    "elsewhere": "mkdir x; cp {} x/y",
    "json": "python3 -c 'import json, sys; print(json.dumps(open(sys.argv[1]).read()))' {}",
    "json, numbered": (
        "cat -n {} | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))'"
    ),
    "event": (
        'python3 -c \'import json, sys; print(json.dumps({{"type": "tool_result", '
        '"text": json.dumps({{"content": open(sys.argv[1]).read()}})}}))\' {} '
        "> output/events.jsonl"
    ),
}
PLACES = {
    "to stderr": "stderr.log",
    "copied": "files/output/found.yaml",
    "elsewhere": "files/_modified/x/y",
    "event": "events.jsonl and files/output/events.jsonl",
}


def leaks_of(bench: Bench, **options: Any) -> list[str]:
    result = bench.run(trial=1 + len(list(bench.runs.glob("cases/*/*"))))
    assert result.status in ("passed", "failed")
    options = {"answers": ANSWERS, "files": ("notes.md", "data"), **options}
    return [str(leak) for leak in find_leaks(bench.case(), str(bench.stored(result)), **options)]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("style", STYLES)
def test_an_agent_that_reads_the_key_is_found(tmp_path: Path, style: str, agent: str) -> None:
    bench = Bench(tmp_path)
    case = bench.add_case(
        files={
            "input.yaml": "prompt: Write\n",
            "annotations.yaml": STYLES[style],
            "notes.md": "",
            "data/a": "",
        }
    )
    bench.command(AGENTS[agent].format(shlex.quote(str(case / "annotations.yaml"))))
    assert leaks_of(bench) == [
        "answer key seen by the agent: annotations.notes.reviewer appears in "
        + PLACES.get(agent, "stdout.log")
    ]


@pytest.fixture
def told(bench: Bench) -> Callable[..., list[str]]:
    """The leaks where an agent says something about a case with these files."""

    def tell(text: str, annotations: Any = None, guidance: Any = None, **options: Any) -> list[str]:
        case = bench.dataset / "refund_yes"
        if annotations is not None:
            (case / "annotations.yaml").write_text(yaml.safe_dump(annotations))
        if guidance is not None:
            (case / "answers.yaml").write_text(yaml.safe_dump(guidance))
        bench.command(f"printf %s {shlex.quote(text)}")
        return [leak.split(": ", 1)[1].split(" appears")[0] for leak in leaks_of(bench, **options)]

    return tell


Told = Callable[..., list[str]]


def test_an_agent_that_saw_nothing(told: Told) -> None:
    key = {"notes": "Dana thinks clause 17b settles it", "count": 3}
    assert told("Clause 17b settles it, I think.", key) == []


def test_no_annotations_and_no_answers(bench: Bench, told: Told) -> None:
    (bench.dataset / "refund_yes" / "annotations.yaml").unlink()
    assert told("anything at all") == []


def test_each_value_is_named_once_in_the_order_of_the_key(told: Told) -> None:
    key = {
        "z": ["Dana thinks clause 17b settles it", "no", "but Evan does not agree"],
        "a": "Dana-2024-xyz-9",
    }
    text = "Dana-2024-xyz-9, but Evan does not agree: Dana thinks clause 17b settles it. " * 3
    assert told(text, key) == ["annotations.a", "annotations.z[0]", "annotations.z[2]"]


def test_the_question_answerers_file_is_part_of_the_key(told: Told) -> None:
    guidance = {"colour": {"say": "rather the dark teal one"}}
    assert told("rather the dark teal one", {}, guidance) == ["answers.colour.say"]


def test_what_the_agent_may_reproduce(told: Told) -> None:
    key = {
        "expected": {"text": "the answer is forty-two"},
        "items": [{"gold": "the first gold text"}, {"gold": "the second gold text"}],
        "why": "the answer is forty-two",
        "unexpected": "the third text of all",
    }
    text = (
        "the answer is forty-two, the first gold text, the second gold text, the third text of all"
    )
    assert told(text, key) == ["annotations.unexpected"]
    own = ["annotations.unexpected", "expected.text", "items", "answers.say"]
    assert told(text, key, {"say": "the third text of all"}, answers=own) == []


def test_what_the_agent_was_given(told: Told, bench: Bench) -> None:
    key = {
        "a": "WHAT is  6 x 7?",
        "b": "a companion said so",
        "c": "prompts say many things",
        "d": "length is really short",
        "e": "notes of the data",
    }
    case = bench.dataset / "refund_yes"
    (case / "data" / "deep" / "said.json").write_text('{"text": "A companion\\n said so"}')
    (case / "gold.txt").write_text("notes of the data")
    text = "\n".join([*key.values(), "WHAT is 6 x 7?"])
    assert told(text, key, texts=("Prompts say many things.",)) == [
        "annotations.d",
        "annotations.e",
    ]
    assert told(text, key | {"tags": {"length": "is really short"}}, files=()) == [
        "annotations.b",
        "annotations.c",
        "annotations.e",
    ]


@pytest.mark.parametrize(
    "value",
    [
        123456789012345,
        1234567890.123,
        "1234567890123",
        "2024-05-17T10:11:12Z",
        "12 345 678 901",
        True,
        None,
        "short text",
        "------------",
        "42 ? 42 ? 42",
    ],
)
def test_values_that_say_nothing(told: Told, value: Any) -> None:
    assert told(f"value: {value}", {"value": value}) == []


@pytest.mark.parametrize(
    "value",
    [
        "intermediate",
        "customer service",
        "billing_dispute",
        "out-of-scope",
        "yes or no",
        "docs/v2/refunds.md",
        "https://example.com/refunds",
        "reference.md",
    ],
)
def test_words_that_anybody_writes_count_only_beside_their_key(told: Told, value: str) -> None:
    key = {"level": value}
    assert told(f"It is about {value} here.", key) == []
    assert told(f"tags: []\nlevel: {value}\n", key) == ["annotations.level"]
    assert told(json.dumps(json.dumps({"level": value})), key) == ["annotations.level"]
    assert told(f"level: {value}er", key) == []
    # Asked for by the input or the prompt, it is an answer.
    assert told(f"level: {value}", key, texts=("Write a level.",)) == []
    assert told(f"level:\n- {value}\n- x", {"level": [value, "x"]}) == ["annotations.level[0]"]


def test_a_phrase_within_longer_words_is_none(told: Told) -> None:
    key = {"code": "alpha-7 beta-8 gamma-9"}
    assert told("xalpha-7 beta-8 gamma-9", key) == []
    assert told("alpha-7 beta-8 gamma-99", key) == []
    assert told("(alpha-7 beta-8 gamma-9)", key) == ["annotations.code"]


def test_half_of_a_long_text_is_enough(told: Told) -> None:
    assert told(" ".join(LONG.split()[9:22]), {"why": LONG}) == ["annotations.why"]
    assert told(" ".join(LONG.split()[9:14]), {"why": LONG}) == []


def test_common_lines_of_code_are_no_leak(told: Told) -> None:
    hidden = "import pytest\nfrom solution import double\n\ndef test_double():\n    assert double(21) == 42\n"
    assert (
        told("import pytest\nimport os\n\ndef test_double():\n    pass\n", {"hidden": hidden}) == []
    )
    assert told(f"```\n{hidden}```", {"hidden": hidden}) == ["annotations.hidden"]


def test_the_message_of_an_agent_without_a_log(tmp_path: Path, bench: Bench) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "record.json").write_text(
        json.dumps({"output": "so the answer is forty-two"})
    )
    found = find_leaks(bench.case(), str(tmp_path / "trial"), answers=())
    assert found == (Leak("refund_yes", "annotations.expected", ("record.json",)),)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"output": 3}', b"\xff"])
def test_an_unusable_record(tmp_path: Path, bench: Bench, content: bytes) -> None:
    (tmp_path / "record.json").write_bytes(content)
    assert find_leaks(bench.case(), str(tmp_path), answers=()) == ()


def test_a_trial_that_is_not_there(bench: Bench, tmp_path: Path) -> None:
    assert find_leaks(bench.case(), str(tmp_path / "gone"), answers=()) == ()


def test_binary_files_are_left_out(bench: Bench) -> None:
    bench.command("printf 'the answer is forty-two\\0' > output/x.bin; echo")
    assert leaks_of(bench, answers=()) == []


@pytest.mark.parametrize("text", ["the ", "\\", "\n   12:  ", '\\n"', "the\\n", "level:\n - "])
def test_no_output_makes_the_search_slow(bench: Bench, tmp_path: Path, text: str) -> None:
    (bench.dataset / "refund_yes" / "annotations.yaml").write_text(
        yaml.safe_dump(
            {"a": '"the the the agent file\\', "b": "\\the the é the", "level": "intermediate"}
        )
    )
    size = 4 * 1024 * 1024
    (tmp_path / "stdout.log").write_text(
        text * (size // len(text)) + " and intermediate agent é the"
    )
    # Anything but linear would take hours.
    assert find_leaks(bench.case(), str(tmp_path), answers=()) == ()


def test_answers_that_cannot_be_read(bench: Bench, tmp_path: Path) -> None:
    (bench.dataset / "refund_yes" / "answers.yaml").write_text("- a list")
    with pytest.raises(CaseError, match=r"answers\.yaml"):
        find_leaks(bench.case(), str(tmp_path), answers=())


def test_places_and_values_in_a_sentence() -> None:
    leak = Leak("c", "annotations.a\x1b", ("a", "b", "c", "d", "e"))
    assert str(leak) == (
        "answer key seen by the agent: annotations.a\\x1b appears in a, b, c and 2 more"
    )
    assert str(leak._replace(places=("a", "b"))).endswith("appears in a and b")


def test_a_leak_fails_the_execution() -> None:
    passed = Verdict("execution", value=True, passed=True)
    first, second = Leak("c", "annotations.a", ("x",)), Leak("c", "annotations.b", ("y",))
    assert with_leaks(passed, ()) is passed
    assert with_leaks(passed, [first]) == Verdict(
        "execution", value=False, passed=False, rationale=str(first)
    )
    failed = Verdict("execution", value=False, passed=False, rationale="exit 3", detail="tail")
    assert with_leaks(failed, [first, second]) == Verdict(
        "execution",
        value=False,
        passed=False,
        rationale=f"{first} (and 1 more)",
        detail=f"{second}\n\nexit 3\n\ntail",
    )


def holds(phrase: Phrase, text: str) -> bool:
    return Searched(text).holds(phrase)


words = st.text(
    st.characters(exclude_categories=["Z", "C"], exclude_characters="\x85"), min_size=1, max_size=8
)


@given(
    st.lists(words, min_size=3, max_size=30),
    st.integers(20, 90),
    st.booleans(),
    st.sampled_from(["'", '"', None, "|", ">"]),
)
def test_a_dumped_text_is_recognised(
    parts: list[str], width: int, unicode: bool, style: Any
) -> None:
    text = " ".join(parts)
    for phrase in phrases_of("path", "", text):
        dumped = yaml.safe_dump(
            {"k": text}, width=width, allow_unicode=unicode, default_style=style
        )
        assert holds(phrase, text)
        assert holds(phrase, dumped)
        assert holds(phrase, json.dumps({"k": dumped}))
        assert holds(phrase, json.dumps({"k": dumped}, ensure_ascii=False))
        assert not holds(phrase, "")
