"""A sealed holdout half: no name, input, output or rationale of its cases leaves the run directory.

Everything about the sealed cases holds one of two words, and the words are looked for everywhere.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from pytest_agent_eval.cases import Split
from pytest_agent_eval.runs.ledger import read_ledger

from .conftest import Project

SECRET = re.compile("quince|canary", re.IGNORECASE)

SUITE = """\
name: secretive
dataset: {path: cases, split: {sealed: true}}
execution: {timeout: 0.5, parallelism: 4}
runner: {type: python, function: agent:run}
judges:
  - name: right
    labels: labels.yaml
    check: |
      if outputs['input']['do'] == 'puzzle':
          raise ValueError('canary in a judge')
      return outputs['input']['do'] != 'fail', outputs['final_message']
  - {name: wise, if: "annotations.get('wise')", check: "return True, 'canary, wisely'"}
thresholds:
  wise: {min_pass_rate: 0.1}
"""

AGENT = """\
import logging
import sys
import time
import warnings

from pytest_agent_eval import RunnerError


def run(task):
    said = task.input["message"]
    print("stdout", said)
    print("stderr", said, file=sys.stderr)
    logging.getLogger("agent").error("log %s", said)
    warnings.warn(f"warning {said}")
    do = task.input["do"]
    if do == "raise":
        raise ValueError(said)
    if do == "hang":
        time.sleep(0.6)
    if do == "chat":
        for _ in range(30):
            time.sleep(0.01)
            print("chatting", said)
    if do == "lost":
        raise RunnerError(said)
    return said
"""

CONFTEST = """\
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(autouse=True)
def picky(request):
    case = getattr(request.node, "case", None)
    if case is not None and getattr(case, "tags", {}).get("picky"):
        raise LookupError(case.name + " canary")


def pytest_agent_eval_trial_finished(result):
    with open(HERE / "told.txt", "a") as file:
        file.write(result.case + "\\n")


def pytest_collection_modifyitems(items):
    # Another test in the middle of the sealed cases.
    others = [item for item in items if item.name == "test_other"]
    sealed = [item for item in items if item.name.startswith("sealed")]
    if others and sealed:
        items.remove(others[0])
        items.insert(items.index(sealed[0]) + 1, others[0])


class Handler:
    def trial(self, result):
        with open(HERE / "handled.txt", "a") as file:
            file.write(result.case + "\\n")

    def finished(self, run):
        (HERE / "finished.txt").write_text(repr((run.header, run.summary, run.notes)))
        return ""


def pytest_agent_eval_report_handlers():
    return [Handler()]


def pytest_agent_eval_run_finished(summary):
    cases = [case.label for suite in summary.suites for case in suite.cases]
    (HERE / "summed.txt").write_text("\\n".join(cases))
"""


@pytest.fixture
def sealed(project: Project, pytester: pytest.Pytester) -> Project:
    """Eight sealed cases, each of another fate, one that cannot be read, and three of the dev half.

    Names are tried until one has the half that it is to have.
    """
    pytester.makeini("[pytest]\nagent_eval = true\nfilterwarnings = always\n")
    project.suite(SUITE)
    project.write("agent.py", AGENT)
    project.write("conftest.py", CONFTEST)
    numbers = iter(range(1000))

    def named(word: str, half: str) -> str:
        return next(name for n in numbers if Split().half(name := f"{word}-{n}") == half)

    labels = {}
    fates = ["pass", "chat", "fail", "raise", "hang", "lost", "puzzle", "pass"]
    for number, do in enumerate(fates):
        annotations = {"wise": True, "tags": {"colour": "canary"}, "category": "quince"}
        if number == len(fates) - 1:
            annotations["tags"] = {"picky": "canary"}
        name = named("quince", "holdout")
        labels[name] = do == "fail"
        project.case(name, {"message": f"canary {number}", "do": do}, annotations)
    broken = named("quince", "holdout")
    project.case(broken, "message: canary\n", "tags: [canary\nquince: {")
    for do in ("pass", "pass", "fail"):
        name = named("plain", "dev")
        labels[name] = True
        project.case(name, {"message": f"said {do}", "do": do})
    project.write("labels.yaml", yaml.safe_dump(labels))
    return project


def everything(project: Project, result: pytest.RunResult) -> dict[str, str]:
    """All that a session printed or wrote, outside of the run directory and the dataset."""
    inside = (
        ".agent-eval",
        "cases",
        "labels.yaml",
        "test_other.py",
        "agent.py",
        "conftest.py",
        "eval.yaml",
        "__pycache__",
    )
    found = {"stdout": result.stdout.str(), "stderr": result.stderr.str()}
    for path in sorted(project.path.rglob("*")):
        parts = path.relative_to(project.path).parts
        if path.is_file() and not set(parts) & set(inside):
            found["/".join(parts)] = path.read_text(errors="replace")
    summaries = (project.path / ".agent-eval").rglob("summary.yaml")
    return found | {path.parent.name: path.read_text() for path in summaries}


def assert_sealed(found: dict[str, str]) -> None:
    for place, text in found.items():
        hit = SECRET.search(text)
        assert hit is None, f"{place}: {text[max(0, hit.start() - 200) : hit.end() + 100]}"


NO_OTHERS = ("-p", "no:randomly", "-p", "no:rerunfailures", "-p", "no:anyio")
LOUD = ("-vv", "-rA", "--durations=0", "--setup-show", "--agent-eval-subtests", "-l")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_nothing_of_a_sealed_case_is_shown(
    sealed: Project,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: tuple[str, ...],
) -> None:
    sealed.write(
        "test_other.py",
        "import time\n\n\ndef test_other():\n    time.sleep(0.2)\n    raise ValueError('other')\n",
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(sealed.path / "steps.md"))
    reports = [f"--agent-eval-report=report.{kind}" for kind in ("md", "json", "csv")]
    result = pytester.runpytest_inprocess(
        *NO_OTHERS, *LOUD, *reports, "--junitxml=junit.xml", *workers
    )
    found = everything(sealed, result)
    assert_sealed(found)

    printed = found["stdout"]
    assert "right (said fail)" in printed, "what is of the dev half is shown as ever"
    assert "GATE wise min_pass_rate >= 0.1: " in printed
    assert "looked at for the first time for this suite" in printed
    assert len(set(re.findall(r"sealed-\d+", printed))) == 9
    assert "sealed-9" in found["junit.xml"]
    for report in ("junit.xml", "steps.md", "report.md", "report.json", "report.csv"):
        assert "plain" in found[report], report
    cached = [name for name in found if name.startswith(".pytest_cache")]
    assert any("plain" in found[name] for name in cached)
    assert not any("sealed" in found[name] for name in cached), "the names mean others next time"
    told = sorted(set(found["told.txt"].split()))
    assert len(told) == 3
    assert told == sorted(found["summed.txt"].split()) == sorted(set(found["handled.txt"].split()))
    assert not re.search(r"\] eval.yaml::sealed", printed), "subtests are of the dev half"
    assert "ValueError: other" in printed
    (entry,), notes = read_ledger(sealed.path / "cases.holdout.yaml")
    assert (notes, entry.revealed) == ((), ())

    summary = yaml.safe_load(found[sealed.latest.name])
    assert (summary["holdout"]["sealed"], summary["holdout"]["looks"]) == (True, 1)
    assert len(summary["cases"]) == len(summary["per_case"]) == 3
    stored = sealed.results()
    said = [
        verdict.value
        for result in stored.values()
        for verdict in result.verdicts
        if (result.split, verdict.judge) == ("holdout", "right") and verdict.value is not None
        if "picky" not in result.tags  # a fixture fails, so that its result is asked for by nobody
    ]
    assert 0 < sum(said) < len(said) < 7
    aggregate = summary["splits"]["holdout"]["right"]
    assert (aggregate["scored_cases"], aggregate["errored_cases"]) == (len(said), 1)
    assert f"holdout  pass rate {sum(said) / len(said):.2f}" in printed
    assert all((sealed.latest / one.record).is_dir() for one in stored.values() if one.record)


def test_an_interrupted_session_shows_no_more(sealed: Project, pytester: pytest.Pytester) -> None:
    sealed.write(
        "conftest.py",
        CONFTEST
        + "\n\ndef pytest_runtest_teardown(item):\n"
        + "    if item.name == 'sealed-3':\n        raise KeyboardInterrupt\n",
    )
    result = pytester.runpytest_inprocess(
        *NO_OTHERS, "-v", "--full-trace", "--junitxml=j.xml", no_reraise_ctrlc=True
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert_sealed(everything(sealed, result))
    assert "incomplete" in result.stdout.str()


def test_collecting_names_nobody(sealed: Project, pytester: pytest.Pytester) -> None:
    for arguments in (["-q"], ["-vv"], ["-m", "holdout"], ["-q", "--agent-eval-tag=nothing"]):
        result = pytester.runpytest_inprocess(*NO_OTHERS, "--collect-only", *arguments)
        assert_sealed(everything(sealed, result))
    result = pytester.runpytest_inprocess(*NO_OTHERS, "--collect-only", "-q")
    listed = re.findall(r"eval.yaml::(\S+)", result.stdout.str())
    assert all(name.startswith("plain") for name in listed[:3]), "the dev half is first"
    assert listed[3:] == [f"sealed-{number}" for number in range(1, 10)]


REFUSED = [
    (["-x"], "-x or --maxfail would show single cases"),
    (["--maxfail=3"], "-x or --maxfail would show single cases"),
    (["--lf"], "--lf would show single cases"),
    (["--ff"], "--ff would show single cases"),
    (["--sw"], "--sw would show single cases"),
    (["--pdb"], "--pdb would show single cases"),
    (["-s"], "-s would show single cases"),
    (["-o", "log_cli=true"], "log_cli would show single cases"),
    (["-k", "sealed-1 or plain"], "takes some of its cases and leaves others"),
    (["eval.yaml::sealed-2"], "takes some of its cases and leaves others"),
    (["--deselect", "eval.yaml::sealed-2"], "takes some of its cases and leaves others"),
    (["--agent-eval-limit=1"], "takes some of its cases and leaves others"),
    (["--agent-eval-if", "'do' in input and input['do'] == 'fail'"], "takes some of its cases"),
    (["--agent-eval-tag=colour"], "takes some of its cases and leaves others"),
]


def test_single_cases_cannot_be_taken_out(sealed: Project, pytester: pytest.Pytester) -> None:
    for arguments, reason in REFUSED:
        result = pytester.runpytest_inprocess(*NO_OTHERS, *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, arguments
        said = result.stderr.str() + result.stdout.str()
        assert reason in said, (arguments, said)
        assert "--agent-eval-split dev" in said
        assert_sealed(everything(sealed, result))
    assert not sealed.runs, "nothing has run"
    name = next(path.name for path in (sealed.path / "cases").glob("quince*"))
    for argument in (f"eval.yaml::{name}", f"cases/{name}"):
        result = pytester.runpytest_inprocess(*NO_OTHERS, argument)
        result.stdout.fnmatch_lines(["*of the holdout half, which is sealed: run the whole*"])
        assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not sealed.runs
    # The dev half is as free as ever, and nothing of it is in the ledger.
    result = pytester.runpytest_inprocess(
        *NO_OTHERS, "-x", "-s", "--agent-eval-split=dev", "-k", "plain"
    )
    assert "stdout said" in result.stdout.str()
    assert sealed.runs
    assert not (sealed.path / "cases.holdout.yaml").exists()


def test_refused_by_workers_too(sealed: Project, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*NO_OTHERS, "-n1", "-k", "sealed-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "takes some of its cases and leaves others" in result.stdout.str()
    assert not sealed.runs


def test_revealing_is_recorded(sealed: Project, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*NO_OTHERS, "-v", "-m", "holdout", "--agent-eval-reveal")
    printed = result.stdout.str()
    names = sorted(re.findall(r"::(quince-\d+) (?:PASSED|FAILED|TOLERATED|ERROR)", printed))
    assert len(names) == 8
    assert "canary in a judge" in printed
    text = (sealed.path / "cases.holdout.yaml").read_text()
    (entry,) = yaml.safe_load(text)
    assert entry["revealed"] is True
    assert set(entry["names"]) <= set(names)
    assert (entry["run"], entry["suite"]) == (sealed.latest.name, "eval.yaml")
    assert json.loads((sealed.latest / "run.json").read_text())["suites"][0]["sealed"] is False


def test_what_a_sealed_suite_needs(project: Project) -> None:
    project.cases(2)
    project.suite(
        "dataset: {path: cases, split: {sealed: true, ledger: false}}\n"
        "execution: {mode: batch}\n"
        "runner: {type: cli, command: 'true'}\n"
    )
    result = project.run("eval.yaml")
    result.stdout.fnmatch_lines(
        ["*dataset.split.sealed: a sealed half needs the ledger*", "*not in mode batch*"]
    )


def test_all_of_it_is_in_the_run(sealed: Project, pytester: pytest.Pytester) -> None:
    """The run directory is the source of truth: agent-eval show opens it, and says so."""
    from pytest_agent_eval.cli import main

    pytester.runpytest_inprocess(*NO_OTHERS, "-q", "--agent-eval-split=holdout")
    name = next(one.case for one in sealed.results().values() if one.status == "failed")
    ledger = sealed.path / "cases.holdout.yaml"
    assert main(["show", "latest", "--runs", str(sealed.latest.parent)]) == 0
    shown = Path(ledger).read_text()
    assert main(["show", "latest", name, "--runs", str(sealed.latest.parent)]) == 2
    assert ledger.read_text() == shown
    assert main(["show", "latest", name, "--reveal", "--runs", str(sealed.latest.parent)]) == 0
    entries, _ = read_ledger(ledger)
    assert [entry.revealed for entry in entries] == [(), (name,)]
    assert {entry.run for entry in entries} == {sealed.latest.name}
