from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agent_eval.cases import Case
from pytest_agent_eval.deadline import DeadlineThread
from pytest_agent_eval.execution.batch import CasePlace, batch_case_steps
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.execution.usage import share_of
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runners import Execution, Task
from tests.unit.execution.execution_bench import Bench

CASES = ("late-parcel", "double-charge", "refund")


@dataclass
class Judge:
    """A judge that keeps what it saw, by case."""

    name: str = "any"
    gated: bool = False
    seen: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def judge(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Verdict:
        self.seen[record["case"]] = record
        return Verdict(self.name, value=True, passed=True)


@dataclass
class Batch:
    """One batch in a suite, asked for its cases one by one."""

    bench: Bench

    def asked(
        self,
        shared: SuiteRuntime,
        case: Case,
        cases: list[Case],
        *,
        cancelled: threading.Event | None = None,
    ) -> TrialResult:
        runs, workspaces = self.bench.runs, self.bench.workspaces
        workspaces.mkdir(exist_ok=True)

        def place(one: Case) -> CasePlace:
            record = f"cases/{one.name}/1"
            (runs / record).mkdir(parents=True)
            return CasePlace(one, str(runs / record), record)

        def directory() -> str:
            (runs / "batch").mkdir(parents=True)
            return str(runs / "batch")

        steps = batch_case_steps(
            shared,
            cases,
            case,
            1,
            place=place,
            directory=directory,
            state=str(runs / ".batch.json"),
            workspace_root=str(workspaces),
            cancelled=cancelled or self.bench.cancelled,
        )
        return DeadlineThread().drive(steps, cancelled=cancelled or self.bench.cancelled)

    def run(self, shared: SuiteRuntime) -> list[TrialResult]:
        cases = [self.bench.case(name) for name in CASES]
        return [self.asked(shared, case, cases) for case in cases]


@pytest.fixture
def batch(bench: Bench) -> Batch:
    for name in CASES:
        bench.add_case(
            name, {"input.yaml": f"prompt: about {name}\n", "annotations.yaml": "k: v\n"}
        )
    bench.config = {
        "dataset": {"path": "cases"},
        "outputs": [{"path": "replies"}],
        "execution": {"mode": "batch"},
    }
    return Batch(bench)


def work(batch: Batch, source: str, **execution: Any) -> None:
    batch.bench.config["runner"] = {"type": "cli", "command": ["bash", "-c", source]}
    batch.bench.config["execution"].update(execution)


NUMBERED = "for n in 1 2 3; do echo reply $n > replies/T-00$n.md; done; "


def test_one_invocation_for_all_cases(batch: Batch) -> None:
    work(batch, "echo >> ../calls; ls; cp batch.yaml case_order.yaml ..; " + NUMBERED)
    judge = Judge()
    results = batch.run(batch.bench.runtime(judges=[judge]))
    assert [(result.case, result.status) for result in results] == [
        (name, "passed") for name in CASES
    ]
    assert (batch.bench.workspaces / "calls").read_text() == "\n"
    entries = yaml.safe_load((batch.bench.workspaces / "batch.yaml").read_text())
    assert entries == [{"case": name, "prompt": f"about {name}"} for name in CASES]
    order = yaml.safe_load((batch.bench.workspaces / "case_order.yaml").read_text())
    assert order == [{"case_id": name, "entry_count": 1} for name in CASES]
    for number, name in enumerate(CASES, start=1):
        record = judge.seen[name]
        assert record["replies_content"] == f"reply {number}\n"
        assert dict(record["files"]) == {f"replies/T-00{number}.md": f"reply {number}\n"}
        assert record["stdout"].split() == ["batch.yaml", "case_order.yaml", "output", "replies"]
        assert record["input"] == {"prompt": f"about {name}"}


def test_each_case_has_a_record_that_can_be_judged_again(batch: Batch) -> None:
    event = json.dumps({"type": "message", "text": "all done"})
    work(batch, NUMBERED + f"echo '{event}' > output/events.jsonl; echo edit > elsewhere")
    judge = Judge()
    results = batch.run(batch.bench.runtime(judges=[judge]))
    for result in results:
        directory = batch.bench.runs / result.record
        stored = Record.from_directory(str(directory), case=batch.bench.case(result.case))
        assert dict(stored["files"]) == dict(judge.seen[result.case]["files"])
        assert stored["conversation"] == "all done"
        assert dict(stored["modified_files"]) == {"elsewhere": "edit\n"}


def test_what_it_cost_is_counted_once(batch: Batch) -> None:
    data = json.dumps({"cost_usd": 0.9, "token_usage": {"input": 100, "output": 10}})
    work(batch, NUMBERED + f"echo '{data}' > output/metrics.json")
    judge = Judge()
    results = batch.run(batch.bench.runtime(judges=[judge]))
    assert sum(result.usage.cost_usd or 0 for result in results) == pytest.approx(0.9)
    assert [result.usage.input_tokens for result in results] == [34, 33, 33]
    assert [result.usage.output_tokens for result in results] == [4, 3, 3]
    assert len({result.duration_s for result in results}) == 1
    assert judge.seen["refund"]["cost_usd"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        ("exit 3", "agent", "exited with status 3"),
        ("sleep 300", "timeout", "timed out after 1 s"),
        (
            "echo '{\"cost_usd\": 2}' > output/metrics.json",
            "budget",
            "reported cost $2.00 is over the budget of $1.00",
        ),
    ],
)
def test_its_failure_is_that_of_every_case(batch: Batch, source: str, kind: str, said: str) -> None:
    work(batch, NUMBERED + source, timeout=1.0, max_budget_usd=1.0)
    judge = Judge()
    results = batch.run(batch.bench.runtime(judges=[judge]))
    assert {(result.status, result.kind, result.reason) for result in results} == {
        ("failed", kind, said)
    }
    assert list(judge.seen) == list(CASES), "what was produced is judged all the same"


def test_a_case_for_which_nothing_was_left(batch: Batch) -> None:
    work(batch, "echo one > replies/T-001; echo three > replies/T-003")
    results = batch.run(batch.bench.runtime())
    assert [result.status for result in results] == ["passed", "failed", "passed"]
    assert (results[1].kind, results[1].reason) == (
        "agent",
        "left nothing for this case of the batch",
    )


def test_files_that_belong_to_nobody(batch: Batch) -> None:
    work(batch, "echo x > replies/summary; echo y > replies/log; echo >> ../calls")
    results = batch.run(batch.bench.runtime(judges=[Judge()]))
    assert {(result.status, result.kind) for result in results} == {("error", "case")}
    assert results[0].reason.startswith(
        "2 files belong to no case of the batch: replies/log, replies/summary;"
    )
    assert (batch.bench.workspaces / "calls").read_text() == "\n"


def test_a_pattern_and_what_all_share(batch: Batch) -> None:
    batch.bench.config["outputs"] = [
        {"path": "replies", "batch_pattern": "R{n}"},
        {"path": "logs", "batch_pattern": "*"},
    ]
    work(batch, "for n in 3 1 2; do echo $n > replies/R$n; done; echo all > logs/all")
    judge = Judge()
    batch.run(batch.bench.runtime(judges=[judge]))
    assert dict(judge.seen["double-charge"]["files"]) == {"logs/all": "all\n", "replies/R2": "2\n"}


def test_an_agent_that_only_talks(batch: Batch) -> None:
    work(batch, "echo done")
    judge = Judge()
    assert {result.status for result in batch.run(batch.bench.runtime(judges=[judge]))} == {
        "passed"
    }
    assert judge.seen["refund"]["main_content"] == "done\n"


def test_nothing_at_all(batch: Batch) -> None:
    work(batch, "true")
    results = batch.run(batch.bench.runtime())
    assert {result.kind for result in results} == {"agent"}
    assert all(result.reason.startswith("produced nothing: no output") for result in results)


def test_no_answers_are_handed_out(batch: Batch) -> None:
    work(batch, "grep -r 'k: v' . && echo found; echo done")
    judge = Judge()
    batch.run(batch.bench.runtime(judges=[judge]))
    assert judge.seen["refund"]["stdout"] == "done\n"


def test_what_is_asked_for(batch: Batch) -> None:
    batch.bench.config["execution"].update(prompt="Answer like {prompt}", arguments="{prompt}")
    batch.bench.config["runner"] = {"type": "cli", "command": "true"}
    seen: list[Task] = []

    class Runner:
        def run(self, task: Task) -> Execution:
            seen.append(task)
            return Execution("done")

    batch.run(batch.bench.runtime(runner=Runner()))
    (task,) = seen
    assert task.prompt == "Answer like about late-parcel"
    assert task.arguments == "{prompt}"
    assert task.input == {"batch": [{"case": name, "prompt": f"about {name}"} for name in CASES]}


def test_a_case_that_cannot_be_read_leaves_the_others_alone(batch: Batch) -> None:
    cases = [batch.bench.case(name) for name in CASES]
    Path(cases[1].path, "input.yaml").write_text("case: something else\n")
    work(batch, "cp batch.yaml ..; for n in 1 2; do echo $n > replies/T-$n; done")
    shared = batch.bench.runtime()
    results = [batch.asked(shared, case, cases) for case in cases]
    assert [(result.status, result.kind) for result in results] == [
        ("passed", ""),
        ("error", "case"),
        ("passed", ""),
    ]
    assert "has a field case" in results[1].reason
    entries = yaml.safe_load((batch.bench.workspaces / "batch.yaml").read_text())
    assert [entry["case"] for entry in entries] == ["late-parcel", "refund"]


def test_an_agent_that_cannot_start(batch: Batch) -> None:
    batch.bench.config["runner"] = {"type": "cli", "command": "no-such-program-here"}
    results = batch.run(batch.bench.runtime())
    assert {(result.status, result.kind) for result in results} == {("error", "infrastructure")}


def test_hooks_around_the_session(batch: Batch) -> None:
    batch.bench.config["hooks"] = {
        "before_all": [
            {"command": "printf 'env: {TOKEN: t}\\ndata: {db: up}\\n' > .hook-outputs.yaml"}
        ]
    }
    work(batch, "echo $TOKEN")
    judge = Judge()
    batch.run(batch.bench.runtime(judges=[judge]))
    assert judge.seen["refund"]["stdout"] == "t\n"
    assert judge.seen["refund"]["hook_outputs"] == {"db": "up"}


def test_an_agent_that_changes_the_dataset(batch: Batch) -> None:
    path = Path(batch.bench.case("refund").path)
    work(batch, f"echo x > '{path}/input.yaml.bak'; echo done")
    results = batch.run(batch.bench.runtime())
    assert {result.reason for result in results} == {
        "the dataset was changed by the run: refund/input.yaml.bak"
    }


def test_cases_that_are_asked_for_at_once_share_one_invocation(batch: Batch) -> None:
    work(batch, "echo >> ../calls; " + NUMBERED)
    shared = batch.bench.runtime()
    cases = [batch.bench.case(name) for name in CASES]
    found: dict[str, TrialResult] = {}

    def go(case: Case) -> None:
        found[case.name] = batch.asked(shared, case, cases)

    batch.bench.workspaces.mkdir()
    threads = [threading.Thread(target=go, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {result.status for result in found.values()} == {"passed"}
    assert (batch.bench.workspaces / "calls").read_text() == "\n"


def test_a_batch_that_is_cut_short_is_not_kept(batch: Batch) -> None:
    work(batch, "touch ../begun; sleep 300")
    shared = batch.bench.runtime()
    cases = [batch.bench.case(name) for name in CASES]
    cancelled = threading.Event()

    def stop() -> None:
        while not (batch.bench.workspaces / "begun").exists():
            pass
        cancelled.set()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    result = batch.asked(shared, cases[0], cases, cancelled=cancelled)
    thread.join()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert not os.path.exists(batch.bench.runs / ".batch.json")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_give_the_whole(count: int) -> None:
    usage = Usage(
        cost_usd=0.5,
        input_tokens=101,
        output_tokens=0,
        num_turns=3,
        model="m",
        models_used=("m",),
        per_model_usage={"m": {"input": 101, "cost_usd": 0.5}},
        per_model_turns={"m": 3},
    )
    parts = [share_of(usage, index, count) for index in range(count)]
    assert sum(part.cost_usd or 0 for part in parts) == pytest.approx(0.5)
    assert sum(part.input_tokens or 0 for part in parts) == 101
    assert sum(part.per_model_usage["m"]["input"] for part in parts) == 101
    assert sum(part.per_model_turns["m"] for part in parts) == 3
    assert {part.cache_read_tokens for part in parts} == {None}
    assert {part.models_used for part in parts} == {("m",)}
