"""A stored run that has one of everything that an HTML report shows, and text that attacks it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.evidence.summary import SuiteInfo, SuiteSummary, Summary, summarise
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runs.stored import StoredRun, StoredTrial

ATTACK = (
    "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>"
    "</script><script>window.hacked=3</script> ]]> --> &lt;b&gt; {data} %DATA% ${hacked} "
    "\x1b[31mred\x1b[0m \x00 \x9b \u202eoverride \u2066isolate \u2028line \udc80 half \u200bno width "
    "javascript:window.hacked=4"
)
"""Text that would do something if it were taken for markup, a template or a terminal's input."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
)
SUITE = "evals/eval.yaml"
RUN, BASELINE = "20260102T000000Z-ab12", "20260101T000000Z-cd34"
JUDGES = (
    JudgeInfo("schema", "check", gated=True),
    JudgeInfo("tone", "llm", (1, 5), gated=True),
    JudgeInfo("names_the_order", "builtin"),
)


@dataclass(frozen=True)
class Project:
    """A root directory with a dataset and stored runs.

    Attributes:
        root: the directory.
        results: of the run; ``earlier`` of the baseline.
    """

    root: Path
    results: list[TrialResult] = field(default_factory=list)
    earlier: list[TrialResult] = field(default_factory=list)

    def case(self, name: str, files: Mapping[str, str | bytes]) -> None:
        """A case of the dataset."""
        suite = self.root / SUITE
        if not suite.exists():
            suite.parent.mkdir(parents=True)
            suite.write_text("dataset:\n  path: cases\n")
        write(self.root / "evals" / "cases" / name, files)

    def add(
        self,
        case: str,
        passed: bool = True,
        tone: float = 4.0,
        *,
        files: Mapping[str, str | bytes] = {},
        said: str = "as it should be",
        before: bool = False,
        **more: Any,
    ) -> TrialResult:
        """A trial with its record; ``files`` are relative to the record's directory."""
        number = more.get("trial", 1)
        record = f"cases/{case.replace('/', '~')[:60]}/{number}"
        result = TrialResult(
            **{
                "suite": SUITE,
                "case": case,
                "split": "dev",
                "status": "passed" if passed else "failed",
                "kind": "" if passed else "verdict",
                "reason": "" if passed else f"1 of 3 judges failed: schema ({said})",
                "execution": Verdict("execution", True, passed=True),
                "verdicts": (
                    Verdict("schema", passed, said, passed=passed),
                    Verdict("tone", tone, "warm enough", asked={"model": "m-1", "cost_usd": 0.01}),
                    Verdict("names_the_order", skipped=True, rationale="no order is meant"),
                ),
                "duration_s": 1.5,
                "usage": Usage(cost_usd=0.02, input_tokens=900, output_tokens=80, model="m-2"),
                "started": "2026-01-02T00:00:00+00:00",
                "record": record,
                **more,
            }
        )
        name = BASELINE if before else RUN
        write(self.runs / name / record, {"record.json": "{}", **files})
        (self.earlier if before else self.results).append(result)
        return result

    @property
    def runs(self) -> Path:
        return self.root / ".agent-eval" / "runs"

    def finished(self, **more: Any) -> FinishedRun:
        """The run; ``more`` are fields of its suite's summary."""
        selected = {
            h: len({r.case for r in self.results if r.split == h}) for h in ("dev", "holdout")
        }
        info = SuiteInfo(
            SUITE,
            "support",
            judges=JUDGES,
            thresholds={"schema": {"min_pass_rate": 0.9}, "tone": {"min_mean": 3.0}},
            total=selected,
            selected=selected,
            baseline=BASELINE if self.earlier else "",
        )
        summary = summarise([info], self.results)
        if more:
            summary = Summary((with_more(summary.suites[0], **more),))
        baseline = None
        if self.earlier:
            trials = {(r.suite, r.case, r.variant, r.trial): StoredTrial(r) for r in self.earlier}
            baseline = StoredRun(self.runs / BASELINE, {}, trials)
        header = {
            "started": "2026-01-02T00:00:00Z",
            "git": {"commit": "abcdef0123456789", "dirty": True},
            "versions": {"python": "3.11.2"},
            "options": {"gate": "complete"},
        }
        return FinishedRun(RUN, self.runs / RUN, header, summary, ("a note",), baseline)


@dataclass(frozen=True)
class Extended(SuiteSummary):
    """A summary with a comparison."""

    comparisons: tuple[Any, ...] = ()
    changes: tuple[str, ...] = ()


def with_more(suite: SuiteSummary, **more: Any) -> SuiteSummary:
    """A suite's summary with other fields."""
    known = {name: getattr(suite, name) for name in SuiteSummary.__dataclass_fields__}
    return Extended(**{**known, **more})


def compared(judge: str, outcome: str, **more: Any) -> Any:
    """A comparison of one judge with the baseline."""
    fields = {
        "judge": judge,
        "split": "all",
        "kind": "rate",
        "outcome": outcome,
        "pairs": 10,
        "new": 0.4,
        "old": 0.9,
        "difference": -0.5,
        "interval": Interval(-0.7, -0.1, 0.95, "newcombe"),
        "no_interval": "",
        "p": 0.012,
        "p_adjusted": 0.024,
        "smallest": 0.3,
        "improved": (),
        "regressed": (),
        "only_new": (),
        "only_old": (),
        "unvalidated": False,
    }
    return SimpleNamespace(**{**fields, **more})


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a directory."""
    for name, content in files.items():
        path = os.path.join(os.fsencode(directory), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        with open(path, "wb") as stream:
            stream.write(data)


def events(*several: Mapping[str, Any]) -> str:
    """The text of ``events.jsonl``."""
    return "".join(json.dumps(event) + "\n" for event in several)


def rich(root: Path) -> Project:
    """A run with cases that pass, fail and attack, a baseline, images, edits and two trials."""
    project = Project(root)
    project.case(
        "refund",
        {
            "input.yaml": "prompt: |\n  May I have my money back?\n",
            "annotations.yaml": "expected_output:\n  action: refund\n  order: HL-1\n",
            "orders.yaml": "- HL-1\n- HL-2\n- HL-3\n",
        },
    )
    told: list[dict[str, Any]] = [
        {"type": "message", "agent": "root", "text": "I look at the order."},
        {"type": "tool_call", "name": "Read", "id": "1", "input": {"file_path": "orders.yaml"}},
        {"type": "tool_result", "id": "1", "text": "- HL-1"},
        {"type": "tool_call", "name": "Bash", "id": "2", "input": {"command": "false"}},
        {"type": "tool_result", "id": "2", "text": "exit status 1", "is_error": True},
        {"type": "message", "agent": "root", "text": "You get it back."},
    ]
    project.add(
        "refund",
        False,
        2.0,
        said="order is HL-9, expected HL-1",
        files={
            "events.jsonl": events(*told),
            "files/output/decision.json": '{"order":"HL-9","action":"refund","big":12345678901234567890}',
            "files/output/chart.png": PNG,
            "files/output/blob.bin": b"\0\1\2",
            "files/_modified/orders.yaml": "- HL-1\n- HL-2 returned\n- HL-3\n",
            "record.json": json.dumps({"output": "You get it back."}),
            "stderr.log": "warning: slow\n",
        },
        tags={"channel": "email"},
        category="return",
        group="refunds",
    )
    project.add(
        "refund",
        True,
        4.0,
        before=True,
        files={
            "files/output/decision.json": '{"order":"HL-1","action":"refund"}',
            "record.json": json.dumps({"output": "You get all of it back."}),
        },
    )
    project.case("attack", {"input.yaml": f"prompt: {ATTACK!r}\n"})
    project.add(
        "attack" + ATTACK,
        True,
        said=ATTACK,
        split="holdout",
        tags={ATTACK: ATTACK},
        category=ATTACK,
        notes=(ATTACK,),
        files={
            "files/output/<img src=x onerror=window.hacked=5>.md": ATTACK,
            "files/output/page.svg": "<svg onload='window.hacked=6'></svg>",
            "files/output/invalid.txt": b"caf\xe9 \xff\xfe plain text that goes on",
            "files/output/long.txt": b"x" * 10_000_000,
            "events.jsonl": events({"type": "message", "text": ATTACK}, {"type": ATTACK}),
            "record.json": json.dumps({"output": ATTACK}),
            "stdout.log": ATTACK,
        },
    )
    for number in (1, 2):
        project.add("twice", number == 2, trial=number, said=f"trial {number} said so")
    for number in range(40):
        project.add(f"case-{number}", tone=1.0 + number % 5, split=("dev", "holdout")[number % 2])
    return project


def rich_run(root: Path) -> FinishedRun:
    """The run of :func:`rich`, with comparisons."""
    worse = compared("schema", "worse", regressed=("refund",), improved=("case-1",))
    same = compared(
        "tone",
        "no difference shown",
        kind="mean",
        new=3.1,
        old=3.0,
        difference=0.1,
        interval=Interval(-0.2, 0.4, 0.95, "t"),
        p=0.4,
        p_adjusted=0.4,
    )
    better = compared(
        "names_the_order",
        "better",
        difference=0.2,
        new=0.9,
        old=0.7,
        interval=Interval(0.05, 0.35, 0.95, "newcombe"),
        only_old=("gone",),
    )
    run = rich(root).finished(comparisons=(same, better, worse), changes=("model: m-1 -> m-2",))
    return replace(run, notes=(*run.notes, ATTACK))
