"""The reports that are files: Markdown, JSON and CSV, and what GitHub Actions gets."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_agent_eval.errors import ReportError
from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.reports.case_table import case_table
from pytest_agent_eval.reports.github import MOST_ANNOTATIONS, GitHub
from pytest_agent_eval.reports.handler import (
    FORMATS,
    FinishedRun,
    check_path,
    make_handler,
    write_report,
)
from pytest_agent_eval.reports.markdown import CASES_SHOWN, escaped, markdown
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.reports.table_file import COLUMNS, rows
from pytest_agent_eval.reports.workflow_commands import defused
from pytest_agent_eval.results import TrialResult, Usage, Verdict

HOSTILE = "<script>alert(1)</script> ]]> \x1b[31m \x00 \u202e | `a` [x](http://e) \udc80 ::error::x"


def run_of(*results: TrialResult, gate: float = 1.0, directory: Path | None = None) -> FinishedRun:
    selected = {half: sum(r.split == half for r in results) for half in ("dev", "holdout")}
    info = SuiteInfo(
        "evals/eval.yaml",
        "support",
        judges=(JudgeInfo("schema", "check", gated=True), JudgeInfo("grade", "llm")),
        thresholds={"schema": {"min_pass_rate": gate}},
        total=selected,
        selected=selected,
    )
    header = {"git": {"commit": "abcdef0123456789", "dirty": True}}
    return FinishedRun("20260101T000000Z-ab12", directory, header, summarise([info], results))


def trial(case: str, value: bool = True, *, said: str = "", **more: object) -> TrialResult:
    fields: dict[str, object] = {
        "execution": Verdict("execution", True, passed=True),
        "verdicts": (
            Verdict("schema", value, said, passed=value),
            Verdict("grade", 3.5, "fair enough"),
        ),
        "usage": Usage(cost_usd=0.25, input_tokens=10),
        "kind": "" if value else "verdict",
        **more,
    }
    status = "passed" if value else "failed"
    return TrialResult("evals/eval.yaml", case, "dev", status, **fields)  # type: ignore[arg-type]


def test_markdown_of_a_run() -> None:
    text = markdown(run_of(trial("a"), trial("b", False, said="no total")))
    assert "# Agent evaluation: 1 case did not pass, 1 gate missed" in text
    assert "Run `20260101T000000Z-ab12`, commit `abcdef012345` with changes" in text
    assert "| `schema` | dev | pass rate 0.50 [0.09, 0.91] over 2 cases |" in text
    assert "| schema min_pass_rate >= 1: 0.50 [0.09, 0.91] over 2 cases | ❌ missed |" in text
    assert "| failed | `b` | 1 of 2 judges failed: schema (no total) |" in text


def test_markdown_does_not_list_more_cases_than_a_person_reads() -> None:
    text = markdown(run_of(*(trial(f"c{n:03}", False) for n in range(CASES_SHOWN + 7))))
    assert text.count("| failed |") == CASES_SHOWN
    assert "and 7 more" in text


def test_markdown_keeps_hostile_text_as_text() -> None:
    text = markdown(run_of(trial(HOSTILE, False, said=HOSTILE)))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script>" not in html
    assert "<a " not in html
    assert html.count("<table>") == 3
    assert html.count("<tr>") == 3 + 2 + 1 + 1  # three headings, two judges, a gate, a case


@given(st.text())
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    shown = one_line(text)
    [heading, row] = [t for t in parser.parse(f"| a |\n|---|\n| x{escaped(text)} |") if t.children]
    assert heading.content == "a"
    assert "".join(t.content for t in row.children or () if t.type != "softbreak") == f"x{shown}"
    item = [token for token in parser.parse(f"- {escaped(text)}") if token.children]
    if shown:
        assert len(item) == 1
        assert {token.type for token in item[0].children or ()} <= {"text", "text_special"}
        assert "".join(token.content for token in item[0].children or ()) == shown


def test_json_holds_all_trials_and_is_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "made" / "report.json"
    hostile = trial(HOSTILE, verdicts=(Verdict("grade", float("inf"), HOSTILE),))
    said = make_handler(path).finished(run_of(hostile, trial("b")))
    data = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert said.startswith("report: ")
    assert said.endswith("report.json")
    assert "b" in [t["case"] for t in data["trials"]]
    assert data["run"]["id"] == "20260101T000000Z-ab12"
    assert data["summary"]["judges"]["schema"]["pass_rate"] == 1.0
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_csv_has_a_row_a_trial_and_columns_a_judge() -> None:
    skipped = trial("=1+1", verdicts=(Verdict("schema", skipped=True), Verdict("grade", error="x")))
    text = io.StringIO()
    csv.writer(text).writerows(rows(run_of(trial("a", False, said='no "total",\nreally'), skipped)))
    read = [*reversed([*csv.DictReader(io.StringIO(text.getvalue()))])]  # =1+1 comes before a
    judges = ["schema", "schema.rationale", "grade", "grade.rationale"]
    assert [*read[0]] == [*COLUMNS, *judges]
    assert [read[0][name] for name in judges] == [
        "false",
        'no "total",\nreally',
        "3.5",
        "fair enough",
    ]
    assert [read[1][name] for name in judges] == ["skipped", "", "error", "x"]
    assert read[1]["case"] == "'=1+1"  # or a spreadsheet works it out
    assert read[0]["cost_usd"] == "0.25"
    assert read[0]["variant"] == ""


@given(st.text(max_size=20), st.text(max_size=20))
def test_csv_can_be_read_whatever_was_said(name: str, said: str) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(rows(run_of(trial(name or "x", said=said))))
    [heading, row] = csv.reader(io.StringIO(text.getvalue()))
    assert len(heading) == len(row)
    assert not row[1].startswith(("=", "+", "-", "@"))


def test_github_gets_a_summary_and_annotations(tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    summary.write_text("before\n")
    environ = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_WORKSPACE": str(tmp_path)}
    run = run_of(trial("a, b: c", False, said="50 %\n::stop"), trial("b"))
    said = GitHub(environ, tmp_path / "sub").finished(run).splitlines()
    gate, case = said
    assert gate.startswith(
        "::error file=sub/evals/eval.yaml,title=gate missed%3A schema::GATE schema"
    )
    assert case == (
        "::error file=sub/evals/eval.yaml,title=a%2C b%3A c%3A failed::"
        "a, b: c: 1 of 2 judges failed: schema (50 %25 ::stop)"
    )
    assert summary.read_text() == f"before\n{markdown(run)}\n"


def test_github_is_not_flooded(tmp_path: Path) -> None:
    many = run_of(*(trial(f"c{n}", False) for n in range(40)))
    assert len(GitHub({}, tmp_path).finished(many).splitlines()) == MOST_ANNOTATIONS
    summary = tmp_path / "summary"
    summary.write_bytes(b"x" * (1024 * 1024 - 100))
    GitHub({"GITHUB_STEP_SUMMARY": str(summary)}, tmp_path).finished(many)
    assert b"too long for this page" in summary.read_bytes()[-100:]
    assert summary.stat().st_size <= 1024 * 1024


def test_nothing_an_agent_said_is_a_command_for_github() -> None:
    said = "a\n  ::stop-commands::x\n::add-mask::y\n 1 ##[error]z # ## std::string"
    assert defused(said, {}) == said
    assert defused(said, {"GITHUB_ACTIONS": "true"}) == (
        "a\n  \\x3a:stop-commands::x\n\\x3a:add-mask::y\n 1 \\x23#[error]z # ## std::string"
    )


def test_mistakes_with_paths(tmp_path: Path) -> None:
    known = ", ".join(sorted(FORMATS))
    with pytest.raises(ReportError, match=rf"r\.pdf: a report ends in one of {known}"):
        check_path(tmp_path / "r.pdf")
    (tmp_path / "x.md").mkdir()
    with pytest.raises(ReportError, match="is a directory"):
        make_handler(tmp_path / "x.md")
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written: a part of its path is a file"):
        write_report(tmp_path / "file" / "r.md", "x")


def test_a_report_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    write_report(path, "first")
    with pytest.raises(ReportError):
        write_report(tmp_path / "r.md" / "x.md", "second")
    assert path.read_text() == "first"
    write_report(path, "lone \udc80 surrogate")
    assert path.read_text() == "lone \\udc80 surrogate"


def test_a_record_of_a_run_is_found_and_none_outside(tmp_path: Path) -> None:
    mine, other = tmp_path / "runs" / "b", tmp_path / "runs" / "a"
    for place in (mine / "cases" / "x" / "1", other / "cases" / "y" / "1", tmp_path / "z"):
        place.mkdir(parents=True)
    run = run_of(directory=mine)
    assert run.record(trial("x", record="cases/x/1")) == mine / "cases" / "x" / "1"
    assert run.record(trial("y", record="../a/cases/y/1")) == other / "cases" / "y" / "1"
    assert run.record(trial("z", record="../../z")) is None
    assert run.record(trial("w", record="cases/w/1")) is None
    assert run_of().record(trial("x", record="cases/x/1")) is None


def test_table_of_cases() -> None:
    several = (
        trial("long-" + "x" * 60, trial=1),
        trial("long-" + "x" * 60, False, trial=2),
        trial("b", verdicts=(Verdict("grade", error="broke"), Verdict("schema", skipped=True))),
        TrialResult("evals/eval.yaml", "c", "dev", "error", "infrastructure", "no agent"),
    )
    run = run_of(*several)
    lines = [*case_table(run.summary.suites[0].cases, ("schema", "grade"), 80)]
    assert [line.split() for line in lines] == [
        ["case", "status", "schema", "grade"],
        ["b", "passed", "-", "error", "0.0", "s,", "$0.25"],
        ["c", "error"],
        ["long-" + "x" * 32 + "...", "failed", "1/2", "3.5", "0.0", "s,", "$0.50"],
    ]
    narrow = [*case_table(run.summary.suites[0].cases, ("schema", "grade"), 72)]
    assert narrow[0].endswith("schema  (+1 judges)")
    assert all(len(line) <= 72 for line in narrow)
