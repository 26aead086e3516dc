"""The HTML report without a browser: what is in the file, and that none of it is markup."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import ReportError
from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.evidence.sealing import sealed
from pytest_agent_eval.reports.handler import FinishedRun, make_handler
from pytest_agent_eval.reports.html.budget import TOTAL, allowances
from pytest_agent_eval.reports.html.case_files import CaseFiles
from pytest_agent_eval.reports.html.detail import Details
from pytest_agent_eval.reports.html.document import SCRIPTS, document, island, packed
from pytest_agent_eval.reports.html.stored import Images
from pytest_agent_eval.reports.html.table import cell
from pytest_agent_eval.results import TrialResult, Verdict
from tests.unit.reports.html_page import ELEMENTS, Page, unpacked
from tests.unit.reports.html_run import ATTACK, PNG, Project, compared, events, rich_run

RESULT = TrialResult("evals/eval.yaml", "a", "dev", "passed")


def page_of(run: FinishedRun, place: Path) -> Page:
    return Page(document(run, place))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def rich(root: Path) -> Page:
    return page_of(rich_run(root), root)


# -- the file -------------------------------------------------------------------------------------


def test_the_file_holds_its_own_elements_and_no_others(rich: Page) -> None:
    tags = [tag for tag, _ in rich.elements]
    assert set(tags) == ELEMENTS
    assert len([tag for tag in tags if tag != "script"]) == 16
    assert tags.count("script") == len(rich.data["chunks"]) + 2
    assert not [name for _, attributes in rich.elements for name in attributes if name[:2] == "on"]


def test_the_policy_allows_these_scripts_and_no_request(rich: Page) -> None:
    policy = next(a["content"] for t, a in rich.elements if a.get("http-equiv")) or ""
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["img-src"] == "data:"
    for name, text in (("script-src", rich.texts["script"]), ("style-src", rich.texts["style"])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts[name] == f"'sha256-{digest}'"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", rich.texts["script"])
    assert "url(" not in rich.texts["style"]


def test_scripts_make_no_markup_of_text() -> None:
    place = Path(document.__code__.co_filename).with_name("page")
    assert sorted(path.name for path in place.glob("*.js")) == sorted(SCRIPTS)
    for path in place.glob("*.js"):
        text = path.read_text("utf-8")
        banned = r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\(|Function\("
        assert not re.search(banned, text), path
        assert "</script" not in text


def test_the_same_run_gives_the_same_file(root: Path) -> None:
    run = FinishedRun("r", None, {}, Project(root).finished().summary)
    assert document(run, root) == document(run, root)


_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


@given(
    _TEXT | st.lists(_TEXT, max_size=3) | st.dictionaries(_TEXT, st.floats() | _TEXT, max_size=3)
)
def test_an_island_is_json_and_no_markup(value: Any) -> None:
    text = island(value)
    assert text.isascii()
    assert not set(text) & set("<>&")
    read = json.loads(text, parse_constant=pytest.fail)
    floats = value.values() if isinstance(value, dict) else ()
    if not any(isinstance(v, float) and (v != v or abs(v) == float("inf")) for v in floats):
        assert read == value


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_chunks_hold_any_text_as_it_is(values: list[str]) -> None:
    text = packed(values)
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", text)
    assert unpacked(text) == values


def test_the_file_is_written_at_once_and_says_why_it_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "made" / "report.html"
    handler = make_handler(path)
    run = Project(tmp_path).finished()
    assert handler.finished(run).endswith("report.html")
    assert [found.name for found in path.parent.iterdir()] == ["report.html"]
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ReportError, match=r"file/report\.html: cannot be written: a part of its path"
    ):
        make_handler(tmp_path / "file" / "report.html").finished(run)


# -- the overview and the table -------------------------------------------------------------------


def test_the_overview_says_what_the_summary_says(rich: Page) -> None:
    data = rich.data
    [suite] = data["suites"]
    assert data["verdict"] == "2 cases did not pass"
    assert data["good"] is False
    assert ["commit", "abcdef0123456789, with changes"] in data["facts"]
    assert suite["statuses"] == {"failed": 2, "passed": 41}
    assert [one["outcome"] for one in suite["comparisons"]] == [
        "worse",
        "better",
        "no difference shown",
    ]
    schema = suite["aggregates"][2]
    assert (schema["judge"], schema["split"], schema["scored"]) == ("schema", "all", 43)
    assert schema["interval"][0] < schema["value"] < schema["interval"][1] <= 1
    [gate, _] = suite["gates"]
    assert gate["head"] == "schema min_pass_rate >= 0.9"
    assert (gate["bound"], gate["outcome"], gate["split"]) == (0.9, "passed", "all")
    assert any("cannot tell on which side of 3" in claim for claim in suite["claims"])


def test_a_row_says_what_judges_said_now_and_before(rich: Page) -> None:
    refund = rich.data["cases"][0]
    assert refund["n"] == "refund"
    assert refund["v"] == [["f", False], ["r", 2.0], ["s", None]]
    assert refund["o"] == [["p", True], ["r", 4.0], ["s", None]]
    assert refund["t"] == {"channel": "email"}
    assert (refund["g"], refund["c"], refund["usd"], refund["sec"]) == (
        "refunds",
        "return",
        0.02,
        1.5,
    )
    twice = next(case for case in rich.data["cases"] if case["n"] == "twice")
    assert twice["k"] == 2
    assert twice["v"][0] == ["f", 0.5, 1, 2]
    assert twice["r"].startswith("1 of 2 trials passed: 1 of 3 judges failed")


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        ((), 0),
        ((Verdict("a", error="no"),), ["e", None]),
        ((Verdict("a", float("nan")),), ["r", None]),
        ((Verdict("a", 10**400),), ["r", None]),
        ((Verdict("a", 1 / 3, passed=True),), ["p", 0.333333]),
        ((Verdict("a", 2), Verdict("a", 3)), ["r", 2.5]),
        ((Verdict("a", 2, passed=True), Verdict("a", 3, passed=False)), ["f", 2.5]),
        ((Verdict("a", True, passed=True), Verdict("a", error="no")), ["e", 1.0, 1, 1]),
    ],
)
def test_cell(verdicts: tuple[Verdict, ...], found: Any) -> None:
    assert cell(verdicts) == found


def test_sealed_cases_are_counted_and_not_shown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.add("shown", files={"stdout.log": "said by one that is shown"})
    project.add("secret", split="holdout", files={"stdout.log": "said by one that is not"})
    run = project.finished()
    [suite] = run.summary.suites
    closed = replace(suite, info=replace(suite.info, sealed=True))
    shown = sealed(replace(run.summary, suites=(closed,)))
    text = document(replace(run, summary=shown), tmp_path)
    page = Page(text)
    assert page.data["suites"][0]["sealed"] == 1
    assert "secret" not in text
    assert "one that is not" not in json.dumps(page.details)
    assert "one that is shown" in json.dumps(page.details)
    assert page_of(run, tmp_path).data["suites"][0]["sealed"] == 0


# -- the pages of cases ---------------------------------------------------------------------------


def test_a_case_has_its_input_outputs_events_and_verdicts(rich: Page, root: Path) -> None:
    refund = rich.of("refund")
    assert refund["input"] == "prompt: |\n  May I have my money back?\n"
    assert json.loads(refund["expected"]) == {"action": "refund", "order": "HL-1"}
    [trial] = refund["trials"]
    assert trial["output"] == "You get it back."
    assert trial["stderr"] == "warning: slow\n"
    files = {file["path"]: file for file in trial["files"]}
    assert files["output/decision.json"]["text"].startswith('{"order":"HL-9"')
    assert files["output/blob.bin"] == {"path": "output/blob.bin", "size": 3, "binary": True}
    kind, _, data = files["output/chart.png"]["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == PNG
    assert files["_modified/orders.yaml"]["was"] == "- HL-1\n- HL-2\n- HL-3\n"
    assert [e["type"] for e in trial["events"]].count("tool_call") == 2
    assert trial["events"][4]["is_error"] is True
    assert trial["record"] == ".agent-eval/runs/20260102T000000Z-ab12/cases/refund/1"
    assert (root / trial["record"]).is_dir()
    _, schema, tone, skipped = trial["verdicts"]
    assert (schema["state"], schema["value"]) == ("failed", "false")
    assert schema["rationale"] == "order is HL-9, expected HL-1"
    assert tone["asked"] == ["m-1", "$0.0100"]
    assert skipped["rationale"] == "no order is meant"
    assert trial["old"]["status"] == "passed"
    assert trial["old"]["output"] == "You get all of it back."
    assert trial["old"]["files"][0]["text"] == '{"order":"HL-1","action":"refund"}'


def test_hostile_text_arrives_as_it_was_written(rich: Page) -> None:
    [trial] = rich.of("attack")["trials"]
    assert trial["output"] == ATTACK
    assert trial["verdicts"][1]["rationale"] == ATTACK
    assert trial["events"][0]["text"] == ATTACK
    names = [file["path"] for file in trial["files"]]
    assert "output/<img src=x onerror=window.hacked=5>.md" in names
    assert trial["notes"] == [ATTACK]


def test_long_texts_are_cut_and_say_where_the_rest_is(rich: Page, root: Path) -> None:
    [trial] = rich.of("attack")["trials"]
    long = next(file for file in trial["files"] if file["path"] == "output/long.txt")
    kept, cut = len(long["text"]["text"]), long["text"]["cut"]
    assert kept + cut == long["size"] == 10_000_000
    assert 1000 < kept < 512 * 1024
    assert (root / long["text"]["see"]).stat().st_size == 10_000_000


def test_the_end_of_a_log_and_the_beginning_of_events_are_kept(tmp_path: Path) -> None:
    project = Project(tmp_path)
    many = [{"type": "message", "text": f"message {n} " + "x" * 200} for n in range(5000)]
    long = {"type": "tool_result", "id": "1", "result": {"deep": "y" * 3_000_000}}
    files = {
        "stdout.log": "é" * 1_000_000 + "the end",
        "events.jsonl": "no event\n[1]\n" + events(*many),
    }
    project.add("many", files=files)
    project.add("long", files={"events.jsonl": events({"type": "message", "text": "a"}, long)})
    page = page_of(project.finished(), tmp_path)
    [trial] = page.of("many")["trials"]
    assert trial["stdout"]["end"] is True
    assert trial["stdout"]["text"].endswith("ééthe end")
    assert "\ufffd" not in trial["stdout"]["text"]
    told = [event["text"].split()[1] for event in trial["events"]]
    assert told == [str(n) for n in range(len(told))]
    assert 100 < len(told) < 5000
    assert trial["events_cut"]["cut"] > 0
    [trial] = page.of("long")["trials"]
    assert trial["events"][0]["text"] == "a"
    assert trial["events_cut"]["cut"] > 3_000_000


@given(
    st.lists(
        st.tuples(st.sampled_from(["passed", "failed"]), st.integers(1, 5)), min_size=1, max_size=5
    ),
    st.integers(1, 500),
)
def test_many_trials_share_what_there_is(kinds: list[tuple[Any, int]], times: int) -> None:
    cases = [CaseOutcome("a", "dev", status, (RESULT,) * k) for status, k in kinds * times]
    found = allowances(cases)
    trials = sum(len(case.trials) for case in cases)
    whole = sum(size * len(case.trials) for size, case in zip(found, cases, strict=True))
    assert whole <= TOTAL + 1024 * trials
    by_status = {case.status: size for size, case in zip(found, cases, strict=True)}
    if trials > 200 and len(by_status) == 2 and min(found) > 1024 and max(found) < 512 * 1024:
        assert by_status["failed"] >= 3.9 * by_status["passed"]


@pytest.mark.parametrize("allowance", [1024, 10_000, 200_000])
def test_all_that_is_long_keeps_to_what_a_trial_may_have(tmp_path: Path, allowance: int) -> None:
    project = Project(tmp_path)
    long = "0123456789" * 50_000
    files = dict.fromkeys(("stdout.log", "stderr.log", "files/a.txt", "files/b.txt"), long)
    files["events.jsonl"] = events(*({"type": "message", "text": long},) * 3)
    files["record.json"] = json.dumps({"output": long})
    project.case("a", {"input.yaml": long, "annotations.yaml": f"expected_output: {long}"})
    project.add("a", False, said=long, files=files)
    project.add("a", before=True, said=long, files=files)
    run = project.finished()
    [suite] = run.summary.suites
    maker = Details(run, CaseFiles(suite.info, run.directory), Images(0), tmp_path)
    found = maker.case(suite.cases[0], allowance)
    whole = len(json.dumps(found))
    assert whole < allowance + 6000  # names and paths besides
    [trial] = found["trials"]
    for text in (trial["verdicts"][1]["rationale"], trial["output"], trial["files"][1]["text"]):
        assert len(text["text"]) > allowance / 50
    assert len(trial["old"]["output"]["text"]) > allowance / 50


def test_images_have_a_budget(tmp_path: Path) -> None:
    project = Project(tmp_path)
    image = PNG + b"\0" * 900_000
    for number in range(8):
        project.add(f"c{number}", files={"files/output/a.png": image})
    project.add("huge", files={"files/output/a.webp": b"RIFF....WEBP" + b"\0" * 2_000_000})
    page = page_of(project.finished(), tmp_path)
    shown = ["src" in one["trials"][0]["files"][0] for one in page.details]
    assert shown == [True] * 4 + [False] * 5
    assert page.of("huge")["trials"][0]["files"][0]["image"] == "webp"


def test_what_is_missing_or_broken_is_left_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.case("../outside", {"input.yaml": "prompt: not of the dataset\n"})
    project.case("linked", {"annotations.yaml": "expected_output: [unclosed\n"})
    (tmp_path / "secret.yaml").write_text("prompt: outside of the case\n")
    os.symlink(tmp_path / "secret.yaml", tmp_path / "evals/cases/linked/input.yaml")
    project.add("linked", files={"record.json": "[" * 100_000, "events.jsonl": "[" * 100_000})
    project.add("../outside", record="../../../../etc")
    project.add("none", record="")
    project.case(
        "named",
        {
            "input.json": '{"a": 1}',
            "annotations.yaml": "expected_output: a.txt\n",
            "a.txt": "from the file\n",
        },
    )
    project.add("named")
    page = page_of(project.finished(), tmp_path)
    text = json.dumps(page.details)
    assert "outside of the case" not in text
    assert "not of the dataset" not in text
    assert "record" not in page.of("none")["trials"][0]
    assert "record" not in page.of("..")["trials"][0]
    assert page.of("linked")["trials"][0]["record"].endswith("cases/linked/1")
    assert page.of("named")["expected"] == "from the file\n"
    assert page.of("named")["input_name"] == "input.json"


def test_a_run_that_is_stored_nowhere_has_verdicts_only(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.add("a", files={"stdout.log": "x"})
    run = replace(project.finished(), directory=None)
    [trial] = page_of(run, tmp_path).of("a")["trials"]
    assert "record" not in trial
    assert trial["verdicts"][1]["rationale"] == "as it should be"


def test_a_comparison_without_numbers(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.add("a")
    empty = dict.fromkeys(("new", "old", "difference", "interval", "p", "p_adjusted", "smallest"))
    one = compared("tone", "not compared", kind="none", no_interval="nothing", pairs=0, **empty)
    data = page_of(project.finished(comparisons=(one,)), tmp_path).data
    assert data["suites"][0]["comparisons"][0]["difference"] is None


def test_cases_keep_their_order(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number in range(30):
        project.add(f"c{number}", said=f"said of {number}", files={"stdout.log": "x" * 300_000})
    page = page_of(project.finished(), tmp_path)
    said = [one["trials"][0]["verdicts"][1]["rationale"] for one in page.details]
    assert said == [f"said of {number}" for number in range(30)]
    assert len(page.data["chunks"]) > 3
