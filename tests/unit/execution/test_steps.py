from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_agent_eval.deadline import DeadlineThread
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.steps import Pipeline
from pytest_agent_eval.execution.workspace import Workspace, snapshot
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runners import Task
from tests.unit.execution.execution_bench import Bench

SCRIPT = 'eval "$1"'


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


def pipeline(bench: Bench, *steps: dict[str, Any], **execution: Any) -> None:
    """The agent of each step is its prompt, run by a shell."""
    bench.config["runner"] = {"type": "cli", "command": ["sh", "-c", SCRIPT, "sh", "{args}"]}
    bench.config["execution"] = {"steps": list(steps), **execution}


def execution_of(result: TrialResult) -> Verdict:
    assert result.execution is not None
    return result.execution


def test_steps_share_a_workspace_and_hand_on_what_they_said(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "draft", "prompt": "echo first > output/draft.md; echo drafted"},
        {
            "id": "review",
            "prompt": "cat output/draft.md; echo '{{ steps.draft.output }}"
            " {{ steps.draft.exit_code }} {{ steps.draft.files | join }} {{ input.prompt }}'",
        },
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    assert (result.status, result.reason, result.notes) == ("passed", "", ())
    (record,) = judge.seen
    assert record["stdout"] == "first\ndrafted 0 output/draft.md What is 6 x 7?\n"
    assert record["final_message"] == record["stdout"]
    assert list(record["steps"]) == ["draft", "review"]
    assert record["steps"]["draft"]["stdout"] == "drafted\n"
    assert record["steps"]["draft"]["exit_code"] == 0
    assert dict(record["files"]) == {"output/draft.md": "first\n"}
    stored = bench.stored(result) / "steps"
    assert sorted(path.name for path in stored.iterdir()) == ["draft", "review"]
    assert (stored / "draft" / "stdout.log").read_text() == "drafted\n"


def test_a_value_is_no_template(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo '{''{ 7 * 7 }''}'"},
        {"id": "b", "prompt": "echo '{{ steps.a.output }}'"},
    )
    judge = Judge()
    bench.run(judges=[judge])
    assert judge.seen[0]["stdout"] == "{{ 7 * 7 }}\n"


def test_costs_are_added_and_each_step_has_its_own(bench: Bench) -> None:
    def spend(amount: float) -> str:
        data = json.dumps(
            {"cost_usd": amount, "token_usage": {"input": 10, "output": 1}, "num_turns": 2}
        )
        return f"echo x; echo '{data}' > output/metrics.json"

    pipeline(
        bench,
        {"id": "a", "prompt": spend(0.25)},
        {"id": "b", "prompt": "test ! -e output/metrics.json && echo none"},
        {"id": "c", "prompt": spend(0.5)},
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    assert result.status == "passed"
    assert result.usage == Usage(cost_usd=0.75, input_tokens=20, output_tokens=2, num_turns=4)
    steps = judge.seen[0]["steps"]
    assert [steps[name]["cost_usd"] for name in "abc"] == [0.25, None, 0.5]
    assert steps["a"]["token_usage"]["input"] == 10
    assert steps["b"]["token_usage"] is None
    assert judge.seen[0]["cost_usd"] == 0.75
    assert result.duration_s == pytest.approx(sum(steps[name]["duration_s"] for name in "abc"))


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (
            {"prompt": "x", "runner": {"type": "cli", "command": "no-such-program"}},
            "infrastructure",
        ),
        ({"prompt": "{{ steps.a.nothing }}"}, "case"),
    ],
)
def test_a_step_that_cannot_be_carried_out_leaves_the_cost_of_those_before(
    bench: Bench, last: dict[str, Any], kind: str
) -> None:
    data = json.dumps({"cost_usd": 0.25})
    spend = f"echo x; echo '{data}' > output/metrics.json"
    pipeline(bench, {"id": "a", "prompt": spend}, {"id": "b", **last})
    result = bench.run(judges=[Judge()])
    assert (result.status, result.kind) == ("error", kind)
    assert result.usage.cost_usd == 0.25
    assert result.lasting is (kind == "infrastructure")


def test_events_are_those_of_all_steps(bench: Bench) -> None:
    def say(text: str) -> str:
        event = json.dumps({"type": "message", "text": text})
        return f"echo raw; echo '{event}' > output/events.jsonl"

    pipeline(
        bench,
        {"id": "a", "prompt": say("one")},
        {"id": "b", "prompt": say("two") + "; echo '{{ steps.a.output }}' > output/got"},
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    (record,) = judge.seen
    assert [event["text"] for event in record["events"]] == ["one", "two"]
    assert record["final_message"] == "two"
    assert record["steps"]["a"]["conversation"] == "one"
    assert record["files"]["output/got"] == "one\n"
    stored = Record.from_directory(str(bench.stored(result)), case=bench.case())
    assert stored["steps"]["b"]["conversation"] == "two"


@pytest.mark.parametrize(
    ("step", "kind", "said"),
    [
        ({"prompt": "echo no tests >&2; exit 3"}, "agent", "step b: exited with status 3"),
        ({"prompt": "sleep 300", "timeout": 0.3}, "timeout", "step b: timed out after 0.3 s"),
        (
            {
                "prompt": "echo '{\"cost_usd\": 2}' > output/metrics.json",
                "max_budget_usd": 1,
                "name": "Second",
            },
            "budget",
            "step Second: reported cost $2.00 is over the budget of $1.00",
        ),
    ],
)
def test_a_failing_step_ends_the_case(
    bench: Bench, step: dict[str, Any], kind: str, said: str
) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo fine"},
        {"id": "b", **step},
        {"id": "c", "prompt": "touch ../third"},
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    assert (result.status, result.kind, result.reason) == ("failed", kind, said)
    assert execution_of(result).rationale == said
    assert result.timed_out == (kind == "timeout")
    assert list(judge.seen[0]["steps"]) == ["a", "b"]
    assert not (bench.workspaces / "third").exists()
    if kind == "agent":
        assert execution_of(result).detail == "stderr:\nno tests"
        assert result.exit_code == 3


def test_a_failing_step_may_be_passed_over(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "exit 3", "on_failure": "continue"},
        {"id": "b", "prompt": "echo {{ steps.a.exit_code }}"},
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    assert result.status == "passed"
    assert result.notes == ("step a: exited with status 3, and the case went on",)
    assert judge.seen[0]["stdout"] == "3\n"


def test_steps_that_produce_nothing(bench: Bench) -> None:
    pipeline(bench, {"id": "a", "prompt": "true"}, {"id": "b", "prompt": "true"})
    result = bench.run()
    assert result.kind == "agent"
    assert result.reason.startswith("produced nothing: no output")


def test_exit_statuses_may_be_allowed(bench: Bench) -> None:
    pipeline(bench, {"id": "a", "prompt": "echo x; exit 3"}, allow_exit_codes=[0, 3])
    assert bench.run().status == "passed"


def test_a_step_that_cannot_start_is_infrastructure(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "x", "runner": {"type": "cli", "command": "no-such-program-here"}},
    )
    result = bench.run()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert "no-such-program-here" in result.reason


def test_a_step_with_a_runner_of_its_own(bench: Bench) -> None:
    (bench.root / "steps_agent.py").write_text(
        "def answer(task):\n    return task.prompt.upper()\n"
    )
    pipeline(
        bench,
        {
            "id": "a",
            "prompt": "shout",
            "runner": {"type": "python", "function": "steps_agent:answer"},
        },
        {"id": "b", "prompt": "echo '{{ steps.a.output }}'; echo $LEVEL $effort"},
        {
            "id": "c",
            "prompt": "echo $LEVEL",
            "runner": {
                "type": "cli",
                "command": ["sh", "-c", SCRIPT, "sh", "{args}; echo {effort}"],
                "effort": "high",
            },
        },
    )
    bench.config["runner"]["env"] = {"LEVEL": "suite"}
    judge = Judge()
    result = bench.run(judges=[judge])
    assert result.status == "passed"
    steps = judge.seen[0]["steps"]
    assert steps["a"]["final_message"] == "SHOUT"
    assert steps["b"]["stdout"] == "SHOUT\nsuite\n"
    assert steps["c"]["stdout"] == "suite\nhigh\n", "the rest is that of the suite's runner"


def test_logs_that_are_not_wanted_are_not_kept(bench: Bench) -> None:
    pipeline(
        bench, {"id": "a", "prompt": "echo out; echo err >&2"}, {"id": "b", "prompt": "echo x"}
    )
    bench.config["traces"] = {"stdout": False}
    result = bench.run()
    assert result.status == "passed"
    kept = [path.relative_to(bench.stored(result)) for path in bench.stored(result).rglob("*.log")]
    assert list(map(str, kept)) == ["steps/a/stderr.log"]


def test_variables_of_a_step(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLERS", "from outside")
    pipeline(
        bench,
        {
            "id": "a",
            "prompt": "echo $A $B $C",
            "env": {"B": "step", "C": "$CALLERS", "D": "$NOT_THERE_AT_ALL"},
        },
        {"id": "b", "prompt": "echo $A $B"},
        env={"A": "suite", "B": "suite"},
    )
    judge = Judge()
    result = bench.run(judges=[judge])
    steps = judge.seen[0]["steps"]
    assert steps["a"]["stdout"] == "suite step from outside\n"
    assert steps["b"]["stdout"] == "suite suite\n"
    assert result.notes == (
        "execution.steps.a.env.D: $NOT_THERE_AT_ALL is not set, so the variable is left out",
    )


def test_hooks_around_steps(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo $TOKEN; echo mine > agent.txt"},
        {"id": "b", "prompt": "exit 5"},
    )
    bench.config["hooks"] = {
        "before_step": [
            {
                "command": "echo $STEP_INDEX > hook_$STEP_ID.txt;"
                'echo "env: {TOKEN: token-$STEP_ID}" > .hook-outputs.yaml'
            }
        ],
        "after_step": [{"command": "echo $STEP_ID $STEP_EXIT_CODE >> ../after; echo > after.txt"}],
    }
    judge = Judge()
    result = bench.run(judges=[judge])
    assert result.reason == "step b: exited with status 5"
    (record,) = judge.seen
    assert record["steps"]["a"]["stdout"] == "token-a\n"
    assert (bench.workspaces / "after").read_text() == "a 0\nb 5\n"
    assert dict(record["modified_files"]) == {"agent.txt": "mine\n"}, "not what hooks wrote"
    logs = bench.runs / "hooks" / "refund_yes" / "1"
    assert logs.exists()


def test_a_failing_hook_before_a_step(bench: Bench) -> None:
    pipeline(bench, {"id": "a", "prompt": "touch ../worked"})
    bench.config["hooks"] = {
        "before_step": [{"command": "echo nope; exit 1"}],
        "after_step": [{"command": "touch ../after"}],
    }
    result = bench.run()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "hooks.before_step[0] exited with status 1: nope"
    assert not (bench.workspaces / "worked").exists()
    assert (bench.workspaces / "after").exists()


def test_a_judge_of_one_step(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo 'first' | tee output/a; exit 1"},
        {"id": "b", "prompt": "echo second"},
    )
    bench.config["judges"] = [
        {"name": "one", "check": "return 1", "step": "a"},
        {"name": "two", "check": "return 1", "step": "b"},
        {"name": "whole", "check": "return 1"},
    ]
    one, two, whole = (Judge(name) for name in ("one", "two", "whole"))
    result = bench.run(judges=[one, two, whole])
    assert one.seen[0]["stdout"] == "first\n"
    assert one.seen[0]["exit_code"] == 1
    assert dict(one.seen[0]["files"]) == {"output/a": "first\n"}
    assert one.seen[0]["case"] == "refund_yes"
    assert list(whole.seen[0]["steps"]) == ["a"]
    assert two.seen == []
    assert result.verdicts[1] == Verdict(
        "two", rationale="not judged: step b did not run", skipped=True
    )


def test_a_template_that_asks_for_a_step_that_did_not_run_yet(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo {{ steps.b.output }}"},
        {"id": "b", "prompt": "echo x"},
    )
    result = bench.run()
    assert (result.status, result.kind) == ("error", "case")
    assert "b" in result.reason


def test_a_secret_of_a_step_is_in_nothing_that_is_stored(bench: Bench) -> None:
    pipeline(
        bench,
        {"id": "a", "prompt": "echo key $API_KEY; echo $API_KEY > output/a"},
        {"id": "b", "prompt": "echo {{ steps.a.output }}"},
    )
    shared = bench.runtime()
    task = Task(
        input={"prompt": "x"},
        workspace=bench.root / "w",
        output_dir=bench.root / "w" / "output",
        log_dir=bench.root / "logs",
        env={"API_KEY": "sesame-open-now"},
    )
    task.output_dir.mkdir(parents=True)
    task.log_dir.mkdir()
    workspace = Workspace(str(task.workspace), (0, 0), snapshot(str(task.workspace)), ())
    secrets = Secrets.of(task.env)
    line = Pipeline(shared.steps, task, "c", workspace, (), (0,), secrets=secrets)
    worked = DeadlineThread().drive(line.run())
    assert worked.execution.output == "key ***API_KEY***\n"
    assert worked.steps["a"]["output"] == "key ***API_KEY***\n"
    for path in task.log_dir.rglob("*"):
        assert path.is_dir() or b"sesame" not in path.read_bytes()
