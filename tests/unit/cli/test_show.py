from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.sealing import sealed
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.runs.ledger import read_ledger
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.cli.conftest import HEADER, INFO, Command, close, store, trial


def recorded(writer: RunWriter, result: TrialResult, output: str = "said\n") -> TrialResult:
    """Append a result with a record that holds an output and a file."""
    place = Path(writer.trial_directory(result.case, str(result.trial)))
    (place / "stdout.log").write_text(output)
    (place / "files").mkdir()
    (place / "files" / "out.txt").write_text("0123456789")
    result = replace(result, record=writer.relative(str(place)))
    writer.append(result)
    return result


def test_a_run(runs: Path, command: Command) -> None:
    good, bad = trial("a"), trial("b", value=False)
    close(store(runs, good, bad, name="run"), good, bad, status=1)
    status, out, err = command("show")
    assert (status, err) == (0, "")
    for expected in (
        "run           run",
        "state         complete, exit status 1",
        "options       split dev",
        "commit        c0ffee",
        "greetings: 1 failed, 1 passed",
        "  polite  dev  pass rate 0.50 [0.09, 0.91] over 2 cases, wilson",
        "GATE polite min_pass_rate >= 0.9: ",
        "failed  b  1 of 1 judges failed: polite",
        "passed  a",
    ):
        assert f"\n{expected}" in f"\n{out}", out
    assert out.index("\nfailed  b") < out.index("\npassed  a")
    assert command("show", "latest")[1] == out == command("show", "ru")[1]


def test_a_run_as_json(runs: Path, command: Command) -> None:
    good, bad = trial("a"), trial("b", value=False)
    close(store(runs, good, bad, name="run"), good, bad, status=1)
    data = json.loads(command("show", "--json")[1])
    assert (data["state"], data["header"]["exit_status"]) == ("complete", 1)
    assert [result["case"] for result in data["results"]] == ["a", "b"]
    assert data["summary"]["status"] == {"passed": 1, "failed": 1}
    assert data["summary"]["judges"]["polite"]["scored_cases"] == 2


def test_a_run_that_was_killed(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"), name="run")
    with open(writer.path / "results.jsonl", "ab") as stream:
        stream.write(b'{"v":1,')
    assert "state         running: process" in command("show")[1]
    assert "incomplete" not in command("show")[1]
    (writer.path / "session.lock").unlink()
    _, out, _ = command("show")
    assert "state         interrupted\n" in out
    assert "polite  dev  pass rate 1.00 [0.21, 1.00] over 1 case" in out
    assert "note: results.jsonl: the last line is torn and was dropped" in out
    assert "incomplete: the run ended before its last case" in out


def test_a_case(runs: Path, command: Command) -> None:
    writer = store(runs, name="run")
    recorded(writer, trial("b", value=False, tags={"tone": "formal"}), "one\nlast words\n")
    writer.close()
    status, out, err = command("show", "run", "b")
    assert (status, err) == (0, "")
    for expected in (
        "b: 1 of 1 judge failed: polite (rude)",
        "  failed  polite  rude",
        "  last words",
        "agent      1.5 s, exit status 0",
        f"record     {writer.path}/cases/b/1",
        "cost       $0.25, 1.2k tokens in, 30 out",
        "case of    evals/eval.yaml, dev, tone=formal",
        "files      2 files, 25 bytes",
        "            10  files/out.txt",
    ):
        assert f"\n{expected}" in f"\n{out}", out
    (data,) = json.loads(command("show", "run", "b", "--json")[1])
    assert data["verdicts"][0]["rationale"] == "rude"
    assert data["files"][0] == {"path": "files/out.txt", "bytes": 10}


def test_variants_and_trials(runs: Path, command: Command) -> None:
    results = [trial("a", variant=variant, trial=n) for variant in ("x", "y") for n in (1, 2)]
    store(runs, *results, name="run").close()

    def headlines(*words: str) -> list[str]:
        out = command("show", "run", *words)[1]
        return [line for line in out.splitlines() if line.startswith("a[")]

    assert headlines("a") == [
        "a[x]: passed",
        "a[x], trial 2: passed",
        "a[y]: passed",
        "a[y], trial 2: passed",
    ]
    assert headlines("a[y]") == ["a[y]: passed", "a[y], trial 2: passed"]
    assert headlines("a[y]", "--trial", "2") == ["a[y], trial 2: passed"]
    assert command("show", "run", "a", "--trial", "9")[2] == (
        "agent-eval show: no trial 9 of a is stored; there is 1, 2\n"
    )


def test_attempts_of_a_trial(runs: Path, command: Command) -> None:
    failed = trial("a", status="error", reason="no network", started="2026-01-01T00:00:00")
    store(runs, failed, trial("a", started="2026-01-01T00:01:00"), name="run").close()
    assert "earlier    1 attempt: error (no network)" in command("show", "run", "a")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "nope"), r"no run named nope in .*; the newest there is 20260101T000000Z-0001"),
        (("show", "latest", "greting"), r"no case greting in the run .*; did you mean greeting\?"),
        (("show", "latest", "greeting[w]"), r"did you mean greeting or greeting\[v\]\?"),
        (
            ("show", "latest", "zzz"),
            r"no case zzz in the run .*; there is greeting, greeting\[v\]$",
        ),
        (("show", "./x"), "x: there is no such run"),
    ],
)
def test_what_is_not_there(
    runs: Path, command: Command, words: tuple[str, ...], message: str
) -> None:
    import re

    results = trial("greeting"), trial("greeting", variant="v")
    store(runs, *results, name="20260101T000000Z-0001").close()
    status, out, err = command(*words)
    assert (status, out) == (2, "")
    assert re.search(message, err), err


def test_no_run_at_all(runs: Path, command: Command) -> None:
    status, _, err = command("show")
    assert (status, err) == (2, f"agent-eval show: no run is stored in {runs}\n")


def test_a_run_that_was_scored_again(runs: Path, command: Command) -> None:
    old = store(runs, name="old")
    result = recorded(old, trial("a"))
    old.close()
    new = RunWriter.create(runs, {**HEADER, "rescored_from": "old"}, name="new")
    reference = StoredRun.open(old.path).reference(result, new.path)
    new.append(replace(result, record=reference, rescored=True))
    new.close()
    assert "scored again  old\n" in command("show", "new")[1]
    out = command("show", "new", "a")[1]
    assert f"record     {old.path}/cases/a/1\n" in out
    assert "  said\n" in out
    assert ", judged again" in out
    shutil.rmtree(old.path)
    status, out, _ = command("show", "new", "a")
    assert status == 0
    assert "record     its record was in the run old, which is no longer there\n" in out
    assert "  passed  polite  as it should be" in out


def test_hostile_text_is_escaped_and_stays_in_the_width(runs: Path, command: Command) -> None:
    evil = "\x1b[31mred\x1b[0m\n\x00\u202e" + "x" * 300
    bad = replace(
        trial("b", value=False, reason=evil),
        verdicts=(Verdict("polite\x1b[2J", False, evil, passed=False, detail=evil),),
    )
    writer = store(runs, name="run")
    recorded(writer, bad, evil)
    writer.close()
    for words in (("show",), ("show", "run", "b"), ("show", "--files")):
        status, out, _ = command(*words)
        assert status == 0
        assert not any(mark in out for mark in ("\x1b", "\x00", "\u202e"))
    assert max(map(len, command("show")[1].splitlines())) <= 90
    assert json.loads(command("show", "run", "b", "--json")[1])


def test_the_files_of_every_record(runs: Path, command: Command) -> None:
    writer = store(runs, name="run")
    for name in "ab":
        recorded(writer, trial(name))
    writer.close()
    assert command("show", "--files")[1].count("files/out.txt") == 2
    data = json.loads(command("show", "--json", "--files")[1])
    assert [len(item["files"]) for item in data["trials"]] == [2, 2]


@pytest.mark.parametrize("header", [{}, {"suites": [{"file": "evals/eval.yaml", "name": "g"}]}])
def test_each_variant_is_shown_also_where_the_header_names_none(
    runs: Path, command: Command, header: dict[str, object]
) -> None:
    results = trial("a", variant="x"), trial("a", variant="y", value=False)
    store(runs, *results, name="run", **header).close()
    out = command("show")[1]
    name = "g" if header else "evals/eval.yaml"
    assert f"\n{name} [x]: 1 passed\n  polite  dev  pass rate 1.00" in out
    assert f"\n{name} [y]: 1 failed\n  polite  dev  pass rate 0.00" in out
    assert f"\n{name}: " not in out
    assert "1 failed, 1 passed" in command("runs")[1]


THRESHOLDS = {"polite": {"min_pass_rate": 0.9}}


def told(*, cases: int = 1, variant: str | None = None) -> dict[str, object]:
    """What a header says of a suite."""
    counts = {"dev": cases}
    return SuiteInfo(
        INFO.key,
        INFO.name,
        variant,
        file=INFO.key,
        judges=(JudgeInfo("polite"),),
        thresholds=THRESHOLDS,
        total=counts,
        selected=counts,
    ).to_dict()


def test_a_gate_that_nobody_decided_is_not_decided_by_looking(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"), name="run", suites=[told()])
    gate = "GATE polite min_pass_rate >= 0.9: not decided"
    assert f"{gate} (the session has not ended)\n" in command("show")[1]
    (writer.path / "session.lock").unlink()
    assert f"{gate} (the session did not end by itself)\n" in command("show")[1]


def test_a_summary_that_cannot_be_read_is_named(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"), name="run", suites=[told()])
    summary = summarise([SuiteInfo.from_dict(told())], [trial("a")])
    writer.close(summary.to_yaml_dict("run"), 0, True, [told()])
    assert "GATE polite min_pass_rate >= 0.9: 1.00" in command("show")[1]
    for text in ("{", "[]", "cases: {a: 1}", "file: evals/eval.yaml\ngates: 1\ncases: 3"):
        (writer.path / "summary.yaml").write_text(text)
        status, out, _ = command("show")
        assert status == 0
        assert "min_pass_rate >= 0.9: not decided (summary.yaml cannot be read)\n" in out


def test_a_variant_that_only_an_earlier_session_ran(runs: Path, command: Command) -> None:
    suites = [told(variant="x"), told(variant="y")]
    results = trial("a", variant="x"), trial("a", variant="y")
    writer = store(runs, *results, name="run", suites=suites)
    infos = [SuiteInfo.from_dict(suites[0])]
    summary = summarise(infos, results)
    writer.close(summary.to_yaml_dict("run"), 0, True, suites[:1])
    out = command("show")[1]
    assert "GATE polite [x] min_pass_rate >= 0.9: 1.00" in out
    assert "GATE polite [y] min_pass_rate >= 0.9: not decided (the last session did not" in out


def test_a_sealed_half(runs: Path, command: Command, tmp_path: Path) -> None:
    """Its cases are counted and not shown; opening it is recorded beside the dataset."""
    results = [
        trial("open", value=False),
        trial("quince-1", split="holdout", group="quince"),
        trial("quince-2", split="holdout", value=False, group="quince"),
        trial("quince-broken", split="", status="error", kind="case", verdicts=()),
    ]
    info = replace(
        INFO,
        judges=(JudgeInfo("polite", labels={"quince-1": False, "open": True}),),
        sealed=True,
        digest="v1",
        ledger="evals/cases.holdout.yaml",
        pairs=("quince",),
        total={"dev": 1, "holdout": 2},
        selected={"dev": 1, "holdout": 2},
    )
    writer = store(runs, *results, name="run")
    summary = sealed(summarise([info], results))
    writer.close(summary.to_yaml_dict("run"), exit_status=1, suites=[info.to_dict()])
    evals = tmp_path / "evals"
    evals.mkdir()
    (evals / "eval.yaml").write_text("name: greetings\n")
    for words in (
        ["show"],
        ["show", "--json"],
        ["show", "--files"],
        ["show", "run", "quince"],
        ["runs"],
    ):
        _, out, err = command(*words)
        shown = (out + err).replace("no case quince in", "")
        assert "quince" not in shown, words
    text = command("show")[1]
    assert "greetings: 2 failed, 1 error, 1 passed" in text
    assert "holdout  pass rate 0.50 over 2 cases" in text
    assert "twin discrimination 0.00 [0.00, 0.79] over 1 pair" in " ".join(text.split())
    assert "cases of a sealed half are not listed (--reveal lists them)" in text
    status, out, err = command("show", "run", "quince-2")
    assert (status, out) == (2, "")
    assert "quince-2 is of the holdout half, which is sealed; --reveal shows it" in err
    status, _, err = command("report", "run", "r.md", "r.json", "r.csv")
    assert (status, err) == (0, "")
    for name in ("r.md", "r.json", "r.csv"):
        assert "quince" not in (tmp_path / name).read_text(), name
    assert not (evals / "cases.holdout.yaml").exists()

    assert "quince-2" in command("show", "run", "quince-2", "--reveal")[1]
    assert "quince-1" in command("show", "--reveal")[1]
    entries, _ = read_ledger(evals / "cases.holdout.yaml")
    assert [entry.revealed for entry in entries] == [("quince-2",), ("quince-1", "quince-2")]
    assert {(entry.run, entry.suite, entry.commit) for entry in entries} == {
        ("run", "eval.yaml", "c0ffee")
    }
    command("show", "--reveal")
    assert len(read_ledger(evals / "cases.holdout.yaml")[0]) == 2, "once a run"
    (evals / "eval.yaml").unlink()
    assert (
        "evals/eval.yaml is not above the run: this look is not recorded"
        in command("show", "--reveal")[2]
    )
