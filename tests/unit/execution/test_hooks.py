from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.hooks import HookPlace, Ran, run_hooks
from pytest_agent_eval.execution.once import once, recall, was_begun
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.suite_hooks import end_session
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.runners import Execution, Task
from pytest_agent_eval.suite.models.hooks import HookConfig, HooksConfig
from tests.unit.execution.execution_bench import Bench

ANY_CASE = ("CASE_ID", "CASE_WORKSPACE", "CASE_SOURCE_DIR", "CASE_INPUT")


@dataclass
class Judge:
    """A judge that keeps what it saw."""

    name: str = "any"
    gated: bool = False
    seen: list[Mapping[str, Any]] = field(default_factory=list)

    def judge(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Verdict:
        self.seen.append(record)
        return Verdict(self.name, value=True, passed=True)


@pytest.fixture
def place(tmp_path: Path) -> HookPlace:
    work = tmp_path / "work"
    work.mkdir()
    return HookPlace(str(work), dict(os.environ), str(tmp_path / "logs"))


def run(place: HookPlace, *hooks: str | dict[str, Any], phase: str = "before_each") -> Ran:
    made = [{"command": hook} if isinstance(hook, str) else hook for hook in hooks]
    return run_hooks(phase, [HookConfig.model_validate(hook) for hook in made], place)


# -- one phase ---------------------------------------------------------------------------------


def test_a_hook_is_bash_in_its_directory(place: HookPlace) -> None:
    ran = run(place, "set -o pipefail; [[ a == a ]] && pwd > here; echo out; echo err >&2")
    assert ran == Ran()
    assert Path(place.directory, "here").read_text().strip() == place.directory
    assert Path(place.logs, "before_each.1.log").read_text() == "out\nerr\n"
    assert os.listdir(place.logs) == ["before_each.1.log"]


def test_a_failing_hook_ends_the_phase(place: HookPlace) -> None:
    ran = run(place, {"command": "echo no db; exit 3", "description": "make db"}, "touch later")
    first, *rest = ran.failure.splitlines()
    assert first == "hooks.before_each[0] (make db) exited with status 3: no db"
    assert rest == ["no db"]
    assert not Path(place.directory, "later").exists()


def test_a_silent_failure_says_so(place: HookPlace) -> None:
    assert run(place, "kill -9 $$").failure == (
        "hooks.before_each[0] was killed by signal 9; it wrote nothing"
    )


def test_a_failure_may_be_let_pass(place: HookPlace) -> None:
    ran = run(place, {"command": "exit 1", "on_failure": "continue"}, "touch later")
    assert ran.failure == ""
    assert ran.notes == ("hooks.before_each[0] exited with status 1; it wrote nothing",)
    assert Path(place.directory, "later").exists()


def test_hooks_after_something_all_run_and_fail_nothing(place: HookPlace) -> None:
    ran = run(place, "exit 1", "touch later", "exit 2", phase="after_each")
    assert ran.failure == ""
    assert [note.split(";")[0] for note in ran.notes] == [
        "hooks.after_each[0] exited with status 1",
        "hooks.after_each[2] exited with status 2",
    ]
    assert Path(place.directory, "later").exists()


def test_a_timeout_ends_the_whole_tree(place: HookPlace) -> None:
    ran = run(place, {"command": "sleep 300 & echo $! > child; sleep 300 | cat", "timeout": 0.5})
    assert ran.failure.startswith("hooks.before_each[0] timed out after 0.5 s")
    child = int(Path(place.directory, "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


@pytest.mark.parametrize(("condition", "ran"), [("test -n x", True), ("test -z x", False)])
def test_a_condition_is_a_command(place: HookPlace, condition: str, ran: bool) -> None:
    assert run(place, {"command": "touch done", "condition": condition}) == Ran()
    assert Path(place.directory, "done").exists() == ran


def test_a_condition_that_is_no_command_is_told(place: HookPlace) -> None:
    ran = run(place, {"command": "touch done", "condition": "env.STEP_ID == 'review'"})
    assert ran.notes == (
        "hooks.before_each[0] was not run: its condition is no command that can be run: "
        "env.STEP_ID == 'review'",
    )
    assert not Path(place.directory, "done").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".hook-outputs.yaml", "env: {URL: 'http://x', PORT: 80, TLS: true}\ndata: {id: [1]}\n"),
        (
            ".hook-outputs.json",
            '{"env": {"URL": "http://x", "PORT": 80, "TLS": true}, "data": {"id": [1]}}',
        ),
    ],
)
def test_what_a_hook_hands_over(place: HookPlace, name: str, text: str) -> None:
    Path(place.directory, "source").write_text(text)
    ran = run(place, f"cp source {name}", "echo $URL > seen")
    assert ran.handed.env == {"URL": "http://x", "PORT": "80", "TLS": "true"}
    assert ran.handed.data == {"id": [1]}
    assert Path(place.directory, "seen").read_text() == "http://x\n"
    assert not Path(place.directory, name).exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("env: [", "not valid YAML"),
        ("- a", "must be a mapping with env and data, not list"),
        ("envs: {A: b}", "has the unknown key 'envs'; there are env and data"),
        ("env: [a]", "env must be a mapping, not list"),
        ("env: {A: [b]}", "env.A must be a text or a number, not list"),
        ("env: {1: b}", "env: 1 is no name of a variable"),
        ('env: {A: "x\\0y"}', "env.A holds a NUL character"),
    ],
)
def test_a_bad_handover_is_a_failure_of_the_hook(place: HookPlace, text: str, said: str) -> None:
    Path(place.directory, "source").write_text(text)
    ran = run(place, "cp source .hook-outputs.yaml")
    assert ran.failure.startswith("hooks.before_each[0]: ")
    assert said in ran.failure
    assert not Path(place.directory, ".hook-outputs.yaml").exists()


def test_a_handover_of_a_failing_hook_is_removed_too(place: HookPlace) -> None:
    assert run(place, "echo 'env: {A: b}' > .hook-outputs.yaml; exit 1").failure
    assert not Path(place.directory, ".hook-outputs.yaml").exists()


def test_secrets_are_in_no_log_and_no_message(tmp_path: Path) -> None:
    env = {**os.environ, "API_KEY": "sesame-open-now"}
    place = HookPlace(str(tmp_path), env, str(tmp_path / "logs"), secrets=Secrets.of(env))
    ran = run(place, "echo key $API_KEY; exit 1")
    assert "sesame" not in ran.failure
    assert Path(place.logs, "before_each.1.log").read_text() == "key ***API_KEY***\n"


def test_a_log_of_an_earlier_session_is_not_shown(place: HookPlace) -> None:
    run(place, "echo old; exit 1")
    assert run(place, "exit 1").failure.endswith("it wrote nothing")


@pytest.mark.parametrize("phase", HooksConfig.model_fields)
def test_whether_there_are_hooks(phase: str) -> None:
    assert HooksConfig.model_validate({}).is_empty
    assert not HooksConfig.model_validate({phase: [{"command": "true"}]}).is_empty


# -- around a case -----------------------------------------------------------------------------


def test_around_a_case(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_each": [
            {
                "command": """echo secret > given.txt; printf 'env: {URL: "http://x"}\\n"""
                """data: {issue: 7}\\n' > .hook-outputs.yaml"""
            }
        ],
        "after_each": [{"command": "echo $URL; cat output/answer.txt"}],
    }
    bench.command("echo $URL > output/answer.txt; ls -a")
    judge = Judge()
    result = bench.run(judges=[judge])
    assert (result.status, result.notes) == ("passed", ())
    (record,) = judge.seen
    assert record["hook_outputs"] == {"issue": 7}
    assert record["main_content"] == "http://x\n"
    assert ".hook-outputs" not in record["stdout"]
    assert dict(record["modified_files"]) == {}, "a hook's file is not the agent's edit"
    log = bench.runs / "hooks" / "refund_yes" / "1" / "after_each.1.log"
    assert log.read_text() == "http://x\nhttp://x\n"
    stored = Record.from_directory(str(bench.stored(result)), case=bench.case())
    assert stored["hook_outputs"] == {"issue": 7}


def test_an_edit_of_a_file_that_a_hook_made_is_the_agents(bench: Bench) -> None:
    bench.config["hooks"] = {"before_each": [{"command": "echo 1 > given.txt"}]}
    bench.command("echo 2 >> given.txt")
    judge = Judge()
    bench.run(judges=[judge])
    assert dict(judge.seen[0]["modified_files"]) == {"given.txt": "1\n2\n"}


def test_what_hooks_see_and_the_agent_does_not(bench: Bench) -> None:
    bench.config["hooks"] = {"before_each": [{"command": "env > $CASE_SOURCE_DIR/../../env.txt"}]}
    bench.command("env")
    judge = Judge()
    result = bench.run(judges=[judge])
    text = (bench.suite_directory / "env.txt").read_text()
    seen = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    case = bench.case()
    assert {name: seen[name] for name in (*ANY_CASE, "AGENT_EVAL_WORKSPACE")} == {
        "CASE_ID": "refund_yes",
        "CASE_WORKSPACE": result.workspace,
        "CASE_SOURCE_DIR": case.path,
        "CASE_INPUT": str(case.input_path),
        "AGENT_EVAL_WORKSPACE": str(bench.workspaces),
    }
    assert seen["AGENT_EVAL_RUN_ID"] == bench.run_id
    assert seen["AGENT_EVAL_CONFIG"] == str(bench.suite_directory / "eval.yaml")
    assert seen["AGENT_EVAL_PROJECT_ROOT"] == str(bench.root)
    assert seen["AGENT_EVAL_MODEL"] == "m-1"
    told = judge.seen[0]["stdout"]
    assert not any(f"{name}=" in told for name in (*ANY_CASE, "AGENT_EVAL_CONFIG"))
    assert "refund_yes" not in told


def test_a_failing_before_each_is_no_verdict_on_the_agent(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_each": [{"command": "echo starting; echo no port free; exit 1"}],
        "after_each": [{"command": "touch ../cleaned"}],
    }
    bench.command("touch ../worked")
    result = bench.run(judges=[Judge()])
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "hooks.before_each[0] exited with status 1: no port free"
    assert result.execution is not None
    assert result.execution.detail == "starting\nno port free"
    assert (bench.workspaces / "cleaned").exists()
    assert not (bench.workspaces / "worked").exists()


@pytest.mark.parametrize("source", ["exit 3", "sleep 300"])
def test_after_each_runs_however_the_agent_ends(bench: Bench, source: str) -> None:
    bench.config["hooks"] = {"after_each": [{"command": "touch ../cleaned; exit 4"}]}
    bench.command(f"echo x; {source}", timeout=0.5)
    result = bench.run()
    assert result.status == "failed"
    assert result.notes == ("hooks.after_each[0] exited with status 4; it wrote nothing",)
    assert (bench.workspaces / "cleaned").exists()


def test_after_each_runs_when_the_session_stops(bench: Bench) -> None:
    bench.config["hooks"] = {"after_each": [{"command": "touch ../cleaned; exit 1"}]}
    bench.command("touch ../begun; sleep 300")

    def stop() -> None:
        begun = bench.workspaces / "begun"
        while not begun.exists():
            pass
        bench.cancelled.set()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    result = bench.run()
    thread.join()
    assert result.kind == "infrastructure"
    assert result.notes == ("hooks.after_each[0] exited with status 1; it wrote nothing",)
    assert (bench.workspaces / "cleaned").exists()


def test_parallel_cases_have_logs_of_their_own(bench: Bench) -> None:
    bench.add_case("other")
    bench.config["hooks"] = {"before_each": [{"command": "echo $CASE_ID"}]}
    bench.command("echo x")
    shared = bench.runtime()
    bench.workspaces.mkdir()
    found = {}

    def go(name: str) -> None:
        found[name] = bench.run(bench.case(name), shared=shared)

    threads = [threading.Thread(target=go, args=(name,)) for name in ("refund_yes", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, result in found.items():
        assert result.status == "passed"
        log = bench.runs / "hooks" / name / "1" / "before_each.1.log"
        assert log.read_text() == f"{name}\n"


SERVICE = "sleep 300 > /dev/null 2>&1 & echo $! > {}; sleep 0.7"
"""Longer than half a second, so that the hook's processes are taken down meanwhile."""


def is_running(file: Path) -> bool:
    pid = int(file.read_text())
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"


def test_a_service_of_a_case_lives_as_long_as_the_case(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_each": [{"command": SERVICE.format("../pid")}],
        "after_each": [{"command": "kill -0 $(cat ../pid) && touch ../alive"}],
    }
    bench.command("kill -0 $(cat ../pid) && echo alive")
    assert bench.run().status == "passed"
    assert (bench.workspaces / "alive").exists()
    assert not is_running(bench.workspaces / "pid")


def test_a_service_of_the_session_lives_as_long_as_the_session(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_all": [{"command": SERVICE.format("../pid")}],
        "after_all": [{"command": "kill -0 $(cat ../pid) && touch ../alive"}],
    }
    bench.command("echo x")
    assert bench.run().status == "passed"
    assert is_running(bench.root / "pid")
    assert end_session(str(bench.runs), "s1") == ()
    assert (bench.root / "alive").exists()
    assert not is_running(bench.root / "pid")


# -- around the session ------------------------------------------------------------------------


def test_before_all_runs_once_and_reaches_agents_and_judges(bench: Bench) -> None:
    bench.add_case("other")
    bench.config["hooks"] = {
        "before_all": [
            {
                "command": "pwd >> ../once; printf 'env: {TOKEN: t1}\\ndata: {db: up}\\n' "
                "> .hook-outputs.yaml"
            }
        ],
        "before_each": [{"command": 'echo "data: {of: $CASE_ID}" > .hook-outputs.yaml'}],
        "before_scoring": [{"command": "echo $TOKEN >> ../scoring"}],
        "after_all": [{"command": "echo $TOKEN > ../ended; exit 1"}],
        "before_report": [{"command": "touch ../reported"}],
    }
    bench.command("echo $TOKEN")
    judge = Judge()
    shared = bench.runtime(judges=[judge])
    for name in ("refund_yes", "other"):
        assert bench.run(bench.case(name), shared=shared).status == "passed"
    assert (bench.root / "once").read_text().split() == [str(bench.suite_directory)]
    assert (bench.root / "scoring").read_text().split() == ["t1"]
    assert [record["stdout"] for record in judge.seen] == ["t1\n", "t1\n"]
    assert [record["hook_outputs"] for record in judge.seen] == [
        {"db": "up", "of": "refund_yes"},
        {"db": "up", "of": "other"},
    ]
    assert not (bench.root / "ended").exists()
    # By the process that ends the session, which has opened no suite.
    assert end_session(str(bench.runs), "another") == ()
    assert end_session(str(bench.runs), "s1") == (
        "hooks.after_all[0] exited with status 1; it wrote nothing",
    )
    assert (bench.root / "ended").read_text() == "t1\n"
    assert (bench.root / "reported").exists()
    assert [path for path in (bench.runs / "hooks").iterdir() if path.is_file()] == []
    assert end_session(str(bench.runs), "s1") == ()


def test_suites_and_variants_have_logs_of_their_own(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_all": [{"command": "echo begin"}],
        "after_all": [{"command": "echo end $AGENT_EVAL_MODEL"}],
    }
    bench.command("echo x")
    for label in ("evals~a.eval.yaml", "evals~b.eval.yaml"):
        assert bench.run(shared=bench.runtime(label=label), trial=len(label)).status == "passed"
        bench.workspaces = bench.root / "more"
    assert end_session(str(bench.runs), "s1") == ()
    for label in ("evals~a.eval.yaml", "evals~b.eval.yaml"):
        logs = bench.runs / "hooks" / label
        assert (logs / "before_all.1.log").read_text() == "begin\n"
        assert (logs / "after_all.1.log").read_text() == "end m-1\n"


def test_what_hooks_handed_over_is_for_the_owners_eyes_only(bench: Bench) -> None:
    bench.config["hooks"] = {"before_all": [{"command": "true"}]}
    bench.command("echo x")
    bench.run()
    kept = list((bench.runs / "hooks").glob(".*.json"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_a_failing_before_all_fails_every_case(bench: Bench) -> None:
    bench.add_case("other")
    bench.config["hooks"] = {
        "before_all": [{"command": "echo >> ../tries; echo no docker; exit 1"}],
        "after_all": [{"command": "touch ../ended"}],
    }
    bench.command("touch ../worked")
    shared = bench.runtime()
    for name in ("refund_yes", "other"):
        result = bench.run(bench.case(name), shared=shared)
        assert (result.status, result.kind) == ("error", "infrastructure")
        assert result.reason == "hooks.before_all[0] exited with status 1: no docker"
    assert (bench.root / "tries").read_text() == "\n"
    assert not (bench.workspaces / "worked").exists()
    assert end_session(str(bench.runs), "s1") == ()
    assert (bench.root / "ended").exists()


def test_a_failing_before_scoring_leaves_cases_unjudged(bench: Bench) -> None:
    bench.config["hooks"] = {"before_scoring": [{"command": "echo down; exit 1"}]}
    bench.command("echo x")
    judge = Judge()
    result = bench.run(judges=[judge])
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "hooks.before_scoring[0] exited with status 1: down"
    assert judge.seen == []


def test_after_all_does_not_run_where_nothing_ran(bench: Bench) -> None:
    bench.config["hooks"] = {"after_all": [{"command": "touch ../ended"}]}
    bench.command("true")
    bench.runtime()
    assert end_session(str(bench.runs), "s1") == ()
    assert not (bench.root / "ended").exists()


def test_a_session_that_only_judges_begins_nothing(bench: Bench) -> None:
    phases = ("before_all", "before_scoring", "after_all", "before_report")
    bench.config["hooks"] = {phase: [{"command": f"touch ../{phase}"}] for phase in phases}
    bench.command("true")
    bench.runtime()
    hooks = bench.hooks()
    assert hooks is not None
    hooks.begin_scoring(threading.Event())
    end_session(str(bench.runs), "s1")
    there = [phase for phase in phases if (bench.root / phase).exists()]
    assert there == ["before_scoring", "before_report"]


def test_a_note_of_before_all_is_told_once(bench: Bench) -> None:
    bench.add_case("other")
    bench.config["hooks"] = {"before_all": [{"command": "exit 9", "on_failure": "continue"}]}
    bench.command("echo x")
    shared = bench.runtime()
    notes = [bench.run(bench.case(name), shared=shared).notes for name in ("refund_yes", "other")]
    assert notes == [("hooks.before_all[0] exited with status 9; it wrote nothing",), ()]


def test_once_in_several_processes(tmp_path: Path) -> None:
    program = """
import sys, threading
from pytest_agent_eval.execution.once import once
def action():
    with open(sys.argv[2], "a") as stream:
        stream.write("done\\n")
    return {"by": "somebody"}
print(once(sys.argv[1], action, cancelled=threading.Event()).value["by"])
"""
    arguments = [sys.executable, "-c", program, str(tmp_path / "state"), str(tmp_path / "count")]
    started = [
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )
        for _ in range(3)
    ]
    said = [process.communicate()[0] for process in started]
    assert said == ["somebody\n"] * 3
    assert (tmp_path / "count").read_text() == "done\n"


def test_what_dies_while_doing_it_once_is_done_by_another(tmp_path: Path) -> None:
    path = str(tmp_path / "state")

    def fail() -> dict[str, Any]:
        raise RunnerError("ended")

    with pytest.raises(RunnerError, match="ended"):
        once(path, fail, cancelled=threading.Event())
    assert was_begun(path)
    assert recall(path) is None
    assert once(path, lambda: {"a": 1}, cancelled=threading.Event()) == ({"a": 1}, True)
    assert once(path, lambda: {"a": 2}, cancelled=threading.Event()) == ({"a": 1}, False)


def test_waiting_for_another_process_ends_when_the_session_does(tmp_path: Path) -> None:
    path, cancelled, inside = str(tmp_path / "state"), threading.Event(), threading.Event()
    ended = threading.Event()

    def slow() -> dict[str, Any]:
        inside.set()
        ended.wait(60)
        return {}

    thread = threading.Thread(target=once, args=(path, slow), kwargs={"cancelled": cancelled})
    thread.start()
    assert inside.wait(60)
    cancelled.set()
    with pytest.raises(RunnerError, match="the session stops"):
        once(path, dict, cancelled=cancelled)
    ended.set()
    thread.join()


def test_a_python_agent_gets_what_hooks_hand_over(bench: Bench) -> None:
    bench.config["hooks"] = {
        "before_each": [{"command": "echo 'env: {A: b}' > .hook-outputs.yaml"}]
    }
    seen = []

    class Runner:
        def run(self, task: Task) -> Execution:
            seen.append(dict(task.env))
            return Execution("done")

    assert bench.run(runner=Runner()).status == "passed"
    assert seen == [{"A": "b"}]
