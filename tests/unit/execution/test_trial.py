from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import CaseError
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.trial import run_trial
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runners import Execution, Task
from tests.unit.execution.execution_bench import Bench, Snapshot


@dataclass
class Judge:
    """A judge that applies a function and keeps what it saw."""

    name: str
    function: Callable[[Mapping[str, Any]], bool]
    gated: bool = False
    seen: list[Mapping[str, Any]] = field(default_factory=list)

    def judge(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Verdict:
        self.seen.append(record)
        value = self.function(record)
        return Verdict(self.name, value=value, passed=value)


def says_42() -> Judge:
    return Judge("says_42", lambda outputs: "42" in outputs["main_content"])


@dataclass
class Function:
    """A runner that is a function."""

    function: Callable[[Task], Execution]

    def run(self, task: Task) -> Execution:
        return self.function(task)


def execution_of(result: TrialResult) -> Verdict:
    assert result.execution is not None
    return result.execution


def test_a_passing_trial(bench: Bench) -> None:
    bench.command("echo 42 > output/answer.txt; echo done")
    judge = says_42()
    result = bench.run(judges=[judge])
    assert (result.status, result.kind, result.reason) == ("passed", "", "")
    assert result.verdicts == (Verdict("says_42", value=True, passed=True),)
    assert result.execution == Verdict("execution", value=True, passed=True)
    assert (result.suite, result.case, result.trial) == ("evals/eval.yaml", "refund_yes", 1)
    assert result.record == "cases/refund_yes/1"
    assert result.exit_code == 0
    assert result.notes == ()
    assert len(result.case_digest) == 32
    assert result.started.endswith("+00:00")
    assert result.duration_s > 0
    assert judge.seen[0]["final_message"] == "done\n"
    assert TrialResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    stored = bench.stored(result)
    assert sorted(path.name for path in stored.iterdir()) == ["files", "record.json", "stdout.log"]


def test_a_failing_judge(bench: Bench) -> None:
    bench.command("echo 41")
    result = bench.run(judges=[says_42()])
    assert (result.status, result.kind) == ("failed", "verdict")
    assert result.reason == "1 of 1 judge failed: says_42"


def test_a_failing_judge_with_a_threshold_is_tolerated(bench: Bench) -> None:
    bench.command("echo 41")
    judge = says_42()
    judge.gated = True
    assert bench.run(judges=[judge]).status == "tolerated"


def test_the_stored_trial_gives_the_same_record(bench: Bench) -> None:
    bench.config["outputs"] = [{"path": "reports"}, {"tool": "Read"}]
    bench.command(
        "echo r > reports/r.md; echo x >> notes.md; echo out; echo err >&2;"
        """echo '{"type": "tool_call", "name": "Read"}' > output/events.jsonl;"""
        """echo '{"cost_usd": 0.25, "token_usage": {"input": 5}}' > output/metrics.json"""
    )
    judge = Judge("look", lambda outputs: True)
    result = bench.run(judges=[judge])
    stored = Record.from_directory(str(bench.stored(result)), case=bench.case())

    def whole(record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: dict(value) if isinstance(value, Mapping) else value
            for key, value in record.items()
        }

    assert whole(stored) == whole(judge.seen[0])
    assert stored["cost_usd"] == 0.25
    assert stored["token_usage"]["input"] == 5
    assert [call["name"] for call in stored["tool_calls"]] == ["Read"]
    assert dict(stored["modified_files"]) == {"notes.md": "# Notes\nx\n"}
    assert stored["reports_content"] == "r\n"
    assert stored["stderr"] == "err\n"
    assert result.usage == Usage(cost_usd=0.25, input_tokens=5)


@pytest.mark.parametrize(
    ("source", "kind", "rationale"),
    [
        ("echo x; exit 3", "agent", "exited with status 3"),
        ("echo x; kill -SEGV $$", "agent", "killed by signal 11 (SIGSEGV)"),
        ("true", "agent", "produced nothing: no output, no file in output/, no changed file"),
        ("echo '{\"cost_usd\": 2}' > output/metrics.json", "budget", None),
        ("echo x; echo '{\"cost_usd\": 1.2}' > output/metrics.json", "budget", None),
    ],
)
def test_an_agent_that_did_not_work(
    bench: Bench, source: str, kind: str, rationale: str | None
) -> None:
    bench.command(source, max_budget_usd=1.0)
    judge = Judge("any", lambda outputs: True)
    result = bench.run(judges=[judge])
    said = execution_of(result)
    assert (result.status, result.kind) == ("failed", kind)
    assert said.passed is False
    cost = result.usage.cost_usd
    expected = rationale or f"reported cost ${cost:.2f} is over the budget of $1.00"
    assert said.rationale == result.reason == expected
    assert len(judge.seen) == 1


def test_a_cent_too_coarse_for_a_budget(bench: Bench) -> None:
    bench.command("echo x; echo '{\"cost_usd\": 1.001}' > output/metrics.json", max_budget_usd=1)
    said = execution_of(bench.run()).rationale
    assert said == "reported cost $1.001 is over the budget of $1.00"


def test_an_edit_or_a_file_is_something(bench: Bench) -> None:
    bench.command("echo x >> notes.md")
    assert bench.run().status == "passed"
    bench.command("touch output/empty")
    assert bench.run(trial=2).status == "passed"


@pytest.mark.parametrize("allowed", [[0, 3], "any"])
def test_exit_statuses_may_be_allowed(bench: Bench, allowed: Any) -> None:
    bench.command("echo x; exit 3", allow_exit_codes=allowed)
    result = bench.run()
    assert (result.status, result.exit_code) == ("passed", 3)


def test_the_last_lines_of_output_are_the_detail(bench: Bench) -> None:
    bench.command("seq 1 50; echo no such table >&2; exit 1")
    lines = execution_of(bench.run()).detail.splitlines()
    assert lines == ["stdout:", *(str(n) for n in range(31, 51)), "stderr:", "no such table"]


def test_a_timeout_is_judged_on_what_was_produced(bench: Bench) -> None:
    bench.command("echo 42; exec sleep 60", timeout=0.5)
    result = bench.run(judges=[says_42()])
    assert (result.status, result.kind, result.timed_out) == ("failed", "timeout", True)
    assert execution_of(result).rationale == result.reason == "timed out after 0.5 s"
    assert [verdict.passed for verdict in result.verdicts] == [True]


def test_a_timeout_with_nothing_produced_is_not_judged(bench: Bench) -> None:
    bench.command("exec sleep 60", timeout=0.5)
    result = bench.run(judges=[says_42()])
    assert (result.status, result.kind) == ("failed", "timeout")
    (verdict,) = result.verdicts
    assert verdict.skipped
    assert "produced nothing" in verdict.rationale


def test_a_judge_that_moves_the_process_moves_it_for_itself_only(
    bench: Bench, tmp_path: Path
) -> None:
    def wander(_: Mapping[str, Any]) -> bool:
        os.chdir(tmp_path)
        return True

    here = os.getcwd()
    bench.command("echo 42")
    result = bench.run(judges=[Judge("wanders", wander)])
    assert os.getcwd() == here
    assert any("working directory" in note for note in result.notes)


def test_a_command_that_cannot_be_started_is_infrastructure(bench: Bench) -> None:
    bench.config["runner"] = {"type": "cli", "command": "no-such-agent"}
    result = bench.run(judges=[says_42()])
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason.startswith("the command 'no-such-agent' was not found; PATH of the agent")
    assert (result.execution, result.verdicts, result.exit_code) == (None, (), None)


def test_infrastructure_that_the_runner_reports(bench: Bench) -> None:
    execution = Execution(failure="infrastructure", error="rate limited\nbody", exit_code=None)
    result = bench.run(runner=Function(lambda task: execution), judges=[says_42()])
    assert (result.status, result.kind, result.reason) == (
        "error",
        "infrastructure",
        "rate limited",
    )
    assert execution_of(result).detail == "body"
    nameless = Execution(failure="infrastructure", exit_code=None)
    result = bench.run(runner=Function(lambda task: nameless), trial=2)
    assert result.reason == "the runner failed"


@pytest.mark.parametrize(
    ("execution", "kind", "rationale"),
    [
        (Execution(output="x", failure="agent"), "agent", "the agent failed (agent)"),
        (Execution(output="x", failure="budget", error="too much"), "budget", "too much"),
        (Execution(output="x", timed_out=True), "timeout", "timed out"),
        (Execution(output="x", exit_code=None), "agent", "ended without an exit status"),
        (Execution(output="x", exit_code=-77), "agent", "killed by signal 77"),
    ],
)
def test_what_other_runners_report(
    bench: Bench, execution: Execution, kind: str, rationale: str
) -> None:
    result = bench.run(runner=Function(lambda task: execution))
    assert (result.status, result.kind, result.reason) == ("failed", kind, rationale)


def test_a_runner_that_raises_is_infrastructure(bench: Bench) -> None:
    def fail(task: Task) -> Execution:
        raise ZeroDivisionError("oops")

    result = bench.run(runner=Function(fail))
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "the runner raised ZeroDivisionError: oops"


def test_a_case_error_of_a_runner_is_the_cases(bench: Bench) -> None:
    def fail(task: Task) -> Execution:
        raise CaseError("refund_yes", "no field 'x'")

    result = bench.run(runner=Function(fail))
    assert (result.status, result.kind, result.reason) == ("error", "case", "no field 'x'")


def test_a_cancelled_trial_is_no_verdict(bench: Bench) -> None:
    bench.command("echo x; sleep 60")
    timer = threading.Timer(0.3, bench.cancelled.set)
    timer.start()
    result = bench.run(judges=[says_42()])
    timer.join()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "cancelled before it ended"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"input.yaml": "a: ["}, "input.yaml:1:5: not valid YAML"),
        ({"input.yaml": "prompt: x"}, "workspace.files lists 'notes.md', which this case does not"),
    ],
)
def test_a_broken_case_is_an_error_of_the_case(
    bench: Bench, files: dict[str, str], reason: str
) -> None:
    bench.add_case("broken", {"annotations.yaml": "", **files})
    result = bench.run(bench.case("broken"))
    assert (result.status, result.kind) == ("error", "case")
    assert result.reason.startswith(reason)
    assert not bench.stored(result).exists()


def test_templates_are_rendered(bench: Bench) -> None:
    bench.config["execution"] = {"prompt": "Answer: {prompt}"}
    bench.config["runner"] = {"type": "cli", "command": ["echo", "{prompt}|{args}"]}
    seen = Judge("look", lambda outputs: True)
    bench.run(judges=[seen])
    assert seen.seen[0]["stdout"] == "Answer: What is 6 x 7?|Answer: What is 6 x 7?\n"


def test_a_template_without_its_field_is_an_error_of_the_case(bench: Bench) -> None:
    bench.config["execution"] = {"arguments": "{missing}"}
    result = bench.run()
    assert (result.status, result.kind) == ("error", "case")
    assert "missing" in result.reason


def test_the_environment_of_the_suite(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "given")
    bench.command("echo $A-$B-$C", env={"A": "$GIVEN", "B": "$NOT_GIVEN", "C": "plain"})
    seen = Judge("look", lambda outputs: True)
    result = bench.run(judges=[seen])
    assert seen.seen[0]["stdout"] == "given--plain\n"
    assert result.notes == ("execution.env.B: $NOT_GIVEN is not set, so the variable is left out",)


def test_traces_that_are_switched_off_are_not_stored(bench: Bench) -> None:
    bench.config["traces"] = dict.fromkeys(("stdout", "stderr", "events", "metrics"), False)
    bench.command(
        'echo out; echo err >&2; echo \'{"type": "message"}\' > output/events.jsonl;'
        "echo '{\"cost_usd\": 1}' > output/metrics.json"
    )
    seen = Judge("look", lambda outputs: True)
    result = bench.run(judges=[seen])
    record = seen.seen[0]
    assert (record["stdout"], record["stderr"], record["events"]) == ("", "", [])
    assert record["final_message"] == "out\n"
    assert record["cost_usd"] is None
    assert {path.name for path in bench.stored(result).iterdir()} == {"files", "record.json"}


def test_events_of_the_runner_come_first(bench: Bench) -> None:
    def run(task: Task) -> Execution:
        (task.output_dir / "events.jsonl").write_text('{"type": "message", "text": "file"}\n')
        return Execution(events=({"type": "message", "text": "runner"}, {"type": "odd"}))

    seen = Judge("look", lambda outputs: True)
    result = bench.run(runner=Function(run), judges=[seen])
    assert seen.seen[0]["final_message"] == "runner"
    assert [event["type"] for event in seen.seen[0]["events"]] == ["message", "other"]
    assert len((bench.stored(result) / "events.jsonl").read_text().splitlines()) == 2


def test_an_agent_may_change_its_input_and_judges_see_the_old(bench: Bench) -> None:
    def run(task: Task) -> Execution:
        assert isinstance(task.input, dict)
        task.input.clear()
        (task.workspace / "input.yaml").write_text("prompt: mine\n")
        return Execution(output="x")

    seen = Judge("look", lambda outputs: True)
    bench.run(runner=Function(run), judges=[seen])
    assert seen.seen[0]["input"] == {"prompt": "What is 6 x 7?"}
    assert dict(seen.seen[0]["modified_files"]) == {"input.yaml": "prompt: mine\n"}


def test_the_dataset_is_untouched(
    bench: Bench, snapshot: Callable[[Path], Snapshot], tmp_path: Path
) -> None:
    before = snapshot(bench.dataset)
    bench.command(
        "for f in input.yaml notes.md data/a.csv; do echo changed > $f; done;"
        "rm -rf data; mkfifo output/pipe; ln -s /etc/passwd output/link;"
        "mkdir deep; echo x > deep/x"
    )
    result = bench.run()
    assert result.status == "passed"
    assert snapshot(bench.dataset) == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("echo x >> {}/annotations.yaml", "annotations.yaml"),
        ("rm {}/gold.txt", "gold.txt"),
        ("echo x > {}/new.txt", "new.txt"),
        ("cd {}; for i in 1 2 3 4 5 6 7; do touch new$i; done", "new1, new2"),
    ],
)
def test_a_run_that_changes_the_dataset_fails_loudly(bench: Bench, change: str, named: str) -> None:
    bench.command(change.format(bench.dataset / "refund_yes") + "; echo x; exit 3")
    result = bench.run()
    said = execution_of(result)
    assert (result.status, result.kind) == ("failed", "agent")
    assert said.rationale.startswith(f"the dataset was changed by the run: {named}")
    assert said.detail.startswith("exited with status 3\n\nstdout:")


def test_an_agent_that_deletes_its_workspace(bench: Bench) -> None:
    bench.command('rm -rf "$PWD"; echo gone')
    result = bench.run(judges=[Judge("look", lambda outputs: not outputs["files"])])
    assert result.status == "passed"
    assert result.notes == ("the agent deleted or replaced its workspace",)


def test_a_python_agent_that_raises(bench: Bench) -> None:
    def agent(task: Task) -> str:
        raise ValueError("no idea")

    bench.config["runner"] = {"type": "python", "function": "fixture:agent"}
    result = bench.run(agent=agent)
    said = execution_of(result)
    assert (result.status, result.kind) == ("failed", "agent")
    assert said.rationale == result.reason == "raised ValueError: no idea"
    assert "in agent" in said.detail
    assert "Traceback (most recent call last):" in said.detail


def test_nothing_tells_the_agent_which_case_it_is(bench: Bench, tmp_path: Path) -> None:
    bench.command(
        "env; pwd; find .; cat /proc/self/cmdline; cat input.yaml notes.md; ls -laR ..;ls -la ../.."
    )
    os.environ["OLDPWD"] = str(bench.dataset / "refund_yes")
    try:
        result = bench.run()
    finally:
        del os.environ["OLDPWD"]
    output = (bench.stored(result) / "stdout.log").read_text()
    inside = output.replace(str(tmp_path), "")
    assert "refund_yes" not in inside
    assert "forty-two" not in output
    assert "gold" not in inside
    assert "/evals/cases" not in inside
    assert Path(result.workspace).name in output


def test_each_trial_has_a_workspace_of_its_own(bench: Bench) -> None:
    bench.command("echo x > mine; ls")
    shared = bench.runtime()
    first, second = bench.run(shared=shared), bench.run(trial=2, shared=shared)
    assert first.workspace != second.workspace
    assert Path(first.workspace).parent == Path(second.workspace).parent == bench.workspaces
    again = bench.run(shared=shared)
    assert (again.status, again.kind) == ("error", "infrastructure")
    assert again.reason.startswith("the trial cannot be stored: ")


def test_output_with_anything_in_it_is_stored_as_valid_json(bench: Bench) -> None:
    odd = "a\x00b\x1b[31mc\ud800d�"

    def run(task: Task) -> Execution:
        name = os.fsdecode(b"\xff\n.txt")
        (task.output_dir / name).write_bytes(b"\xff\x00\x1b")
        event: dict[str, Any] = {"type": "message", "text": odd, "x": float("nan")}
        usage = Usage(per_model_usage={odd: {"cost_usd": float("inf")}})
        return Execution(output=odd, events=(event,), notes=(odd,), usage=usage)

    seen = Judge("look", lambda outputs: True)
    result = bench.run(runner=Function(run), judges=[seen])
    stored = bench.stored(result)

    def strict(text: str) -> Any:
        def refuse(constant: str) -> None:
            raise ValueError(constant)

        value = json.loads(text, parse_constant=refuse)
        json.dumps(value, ensure_ascii=False).encode()
        return value

    data = strict((stored / "record.json").read_text())
    assert data["output"] == "a\x00b\x1b[31mc�d�"
    event = strict((stored / "events.jsonl").read_text())
    assert event["text"] == "a\x00b\x1b[31mc�d�"
    assert event["x"] is None
    assert result.notes == ("a\x00b\x1b[31mc�d�",)
    assert seen.seen[0]["files"][f"output/{os.fsdecode(bytes([255, 10]))}.txt"]["size"] == 3
    assert seen.seen[0]["final_message"] == "a\x00b\x1b[31mc�d�"


def test_bytes_on_stdout_stay_as_they_are(bench: Bench) -> None:
    bench.config["runner"] = {
        "type": "cli",
        "command": [sys.executable, "-c", "import os; os.write(1, bytes(range(256)))"],
    }
    result = bench.run()
    assert (bench.stored(result) / "stdout.log").read_bytes() == bytes(range(256))
    json.loads((bench.stored(result) / "record.json").read_text())


def test_what_is_left_in_the_workspace_has_no_influence(bench: Bench, tmp_path: Path) -> None:
    lines = "open({!r}, 'w').write('ran')".format(str(tmp_path / "ran"))
    bench.command(
        "for f in conftest.py sitecustomize.py usercustomize.py pytest.py json.py; do"
        f' echo "{lines}" > $f; cp $f output/$f; done;'
        "printf '[pytest]\\naddopts = -p no:such' > pytest.ini; cp pytest.ini output;"
        "printf '#!/bin/sh\\ntouch ran' > python; chmod +x python; echo x"
    )
    before = list(sys.path)
    result = bench.run(judges=[Judge("look", lambda outputs: len(outputs["files"]) > 5)])
    assert result.status == "passed"
    assert not (tmp_path / "ran").exists()
    assert sys.path == before
    second = bench.run(trial=2)
    assert second.status == "passed"
    assert not (tmp_path / "ran").exists()


def test_a_child_that_goes_on_writing_changes_nothing_after_judging_began(bench: Bench) -> None:
    child = "while true; do echo more; echo more >> output/late.txt; sleep 0.05; done"
    bench.command(
        f"echo '{{\"cost_usd\": 0.5}}' > output/metrics.json; echo begun; "
        f'setsid sh -c "{child}" & sleep 60',
        timeout=0.7,
    )
    sizes: list[int] = []

    def measure(outputs: Mapping[str, Any]) -> bool:
        late = Path(outputs["workspace"], "output", "late.txt")
        sizes.append(late.stat().st_size)
        time.sleep(0.3)
        sizes.append(late.stat().st_size)
        return True

    started = time.monotonic()
    result = bench.run(judges=[Judge("measure", measure)])
    assert time.monotonic() - started < 0.7 + 10
    assert (result.status, result.kind) == ("failed", "timeout")
    assert result.usage.cost_usd == 0.5
    assert sizes[0] == sizes[1] > 0
    assert "begun\n" in (bench.stored(result) / "stdout.log").read_text()


def test_project_files_and_models(bench: Bench) -> None:
    (bench.suite_directory / "tools").mkdir(parents=True)
    (bench.suite_directory / "tools" / "calc.txt").write_text("6 x 7 = 42\n")
    bench.command("cat tools/calc.txt; echo $AGENT_EVAL_MODEL")
    bench.config["runner"]["settings"] = {"project_files": ["tools"]}
    bench.config["models"] = {"skill": "model-a"}
    seen = Judge("look", lambda outputs: True)
    bench.run(judges=[seen])
    assert seen.seen[0]["stdout"] == "6 x 7 = 42\nmodel-a\n"
    assert seen.seen[0]["model"] == "model-a"


def test_a_store_that_cannot_be_written_is_infrastructure(bench: Bench) -> None:
    bench.command("echo x")
    bench.runs.write_text("a file where the run directory should be")
    result = bench.run()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason.startswith("the trial cannot be stored: ")


def test_many_trials_in_many_threads(bench: Bench) -> None:
    bench.command("cat input.yaml > output/copy; echo 42")
    shared = bench.runtime(judges=[says_42()])
    case = bench.case()
    results: list[TrialResult] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(bench.run(case, n, shared=shared)))
        for n in range(1, 17)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {result.trial for result in results} == set(range(1, 17))
    assert {result.status for result in results} == {"failed"}  # output/copy is the main content
    shutil.rmtree(bench.workspaces)


def test_an_attempt_that_ends_leaves_another_at_the_same_trial_alone(
    bench: Bench, tmp_path: Path
) -> None:
    # As on a worker of a cluster on which a killed session left an agent: the resumed run, of the
    # same name, has the case carried out again meanwhile.
    until = "until [ -e {flags}/$0 ]; do sleep 0.02; done"
    bench.command(
        "mkdir {flags}/first 2>/dev/null && { "
        + until.replace("$0", "second")
        + "; exit; }; touch {flags}/second; "
        + until.replace("$0", "go")
        + "; echo 42",
    )
    bench.config["runner"]["command"][2] = bench.config["runner"]["command"][2].replace(
        "{flags}", str(tmp_path)
    )
    shared, case = bench.runtime(), bench.case()
    bench.workspaces.mkdir()

    def attempt(number: int) -> TrialResult:
        places = tmp_path / f"workspaces-{number}"
        places.mkdir()
        return run_trial(
            shared,
            case,
            1,
            directory=str(tmp_path / f"stored-{number}"),
            record_path="",
            workspace_root=str(places),
            cancelled=bench.cancelled,
        )

    with ThreadPoolExecutor() as pool:
        first = pool.submit(attempt, 1)
        while not (tmp_path / "first").exists():
            assert not first.done(), first.result()
        second = pool.submit(attempt, 2)
        first.result()
        (tmp_path / "go").touch()
        assert (second.result().status, second.result().reason) == ("passed", "")
