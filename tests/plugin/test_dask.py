"""Trials on a Dask cluster: a real scheduler and real worker processes on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Project

# They share a cluster, which takes seconds to start.
pytestmark = pytest.mark.xdist_group("dask")

SUITE = """\
name: far
dataset: {path: cases, workspace: {files: [data]}}
execution: {prompt: "Answer {message}", env: {LANGUAGE_OF_TEST: $LANGUAGE_OF_TEST}}
runner: {type: cli, command: "python {config_dir}/tools/agent.py {message}"}
judges:
  - name: answered
    check: |
      from judge_helper import wanted
      return wanted(outputs['annotations']) in outputs['files']['output/answer.txt'], 'looked'
"""

AGENT = """\
import os, pathlib, sys
data = pathlib.Path("data/number.txt").read_text().strip()
seen = [str(p) for p in pathlib.Path("..").rglob("annotations.yaml")]
text = f"{sys.argv[1]} {data} {os.environ.get('LANGUAGE_OF_TEST')} {seen}"
pathlib.Path("output/answer.txt").write_text(text)
pathlib.Path("output/metrics.json").write_text('{"cost_usd": 0.5}')
print("done")
"""


class DaskCluster:
    """A scheduler and its workers, each a process of its own, away from the project."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._file)
        )
        self._until(self._file.exists)
        self.address: str = json.loads(self._file.read_text())["address"]
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self, threads: int = 2) -> subprocess.Popen[bytes]:
        worker = self._start(
            "dask_worker", self.address, "--nthreads", str(threads), "--no-nanny", "--no-dashboard"
        )
        self.workers.append(worker)
        return worker

    def wait_for_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False, timeout=30) as client:
            client.wait_for_workers(count, timeout=60)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()  # nobody needs their farewell, which takes many seconds
            process.wait()

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
        with open(self.directory / f"{module}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
                cwd=self.directory,
                stdout=log,
                stderr=log,
                env={**kept, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"},
            )

    def _until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError((self.directory / "dask_scheduler.log").read_text())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    pytest.importorskip("distributed")
    made = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        made.add_worker()
        made.add_worker()
        made.wait_for_workers(2)
        yield made
    finally:
        made.close()


def _project(project: Project, count: int = 6) -> None:
    project.suite(SUITE)
    project.write("tools/agent.py", AGENT)
    project.write("judge_helper.py", "def wanted(key):\n    return key['wanted']\n")
    for number in range(1, count + 1):
        case = f"case-{number:03d}"
        project.case(case, {"message": f"m{number}"}, {"wanted": f"m{number} {number * 7}"})
        project.write(f"cases/{case}/data/number.txt", f"{number * 7}\n")


def _comparable(project: Project) -> dict[str, Any]:
    summary = project.summary()
    return {key: summary[key] for key in ("judges", "status", "per_case", "gates", "coverage")}


def test_the_same_as_here_from_workers_without_the_project(
    project: Project, cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE_OF_TEST", "en")
    _project(project)
    here = project.subprocess("--agent-eval")
    here.assert_outcomes(passed=6)
    expected = _comparable(project)
    there = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
    there.assert_outcomes(passed=6)
    there.stdout.fnmatch_lines([f"agent-eval: Dask cluster {cluster.address}: 2 workers, *"])
    assert _comparable(project) == expected
    answer = project.latest / "cases/case-002/1/files/output/answer.txt"
    assert answer.read_text() == "m2 14 en []"
    assert project.results()["case-002"].usage.cost_usd == 0.5
    resumed = project.subprocess("--agent-eval", "--agent-eval-resume")
    resumed.stdout.fnmatch_lines(["*trials 6 kept*"])


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_python_agents_that_change_between_two_sessions(
    project: Project, cluster: DaskCluster, kind: str
) -> None:
    project.suite(
        "dataset: {path: evals/cases}\nrunner: {type: python, function: pkg.agent:answer}\n"
        "judges: [{name: ok, check: \"return outputs['final_message'] == 'two'\"}]\n",
        name="eval.yaml",
    )
    project.case("case-001", dataset="evals/cases")
    project.write("pkg/__init__.py", "")
    for word, outcome in (("one", "failed"), ("two", "passed")):
        project.write("pkg/agent.py", f"{kind} answer(task):\n    return '{word}'\n")
        result = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
        result.assert_outcomes(**{outcome: 1})


def test_what_an_agent_does_wrong_is_said_as_here(project: Project, cluster: DaskCluster) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {timeout: 1}
        runner: {type: cli, command: ["sh", "-c", "{script}"]}
        judges: [{name: ok, check: return True}]
        """
    )
    project.case("fails", {"script": "echo oops >&2; exit 3"})
    project.case("hangs", {"script": "sleep 60"})
    project.suite(
        "dataset: {path: cases}\nrunner: {type: cli, command: no-such-command}\n",
        name="missing/eval.yaml",
    )
    project.case("case-001", dataset="missing/cases")
    result = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
    result.assert_outcomes(failed=2, errors=1)
    for said in (
        "exited with status 3",
        "oops",
        "timed out after 1 s",
        "'no-such-command' was not",
    ):
        result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_worker_that_is_killed_in_the_middle(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("distributed")
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.add_worker()
        victim = cluster.add_worker()
        cluster.wait_for_workers(2)
        gate = project.path / "gate"
        project.suite(
            f"""\
            dataset: {{path: cases}}
            runner: {{type: cli, command: ["sh", "-c", "echo $PPID >> {gate}.pids; while [ ! -e {gate} ]; do sleep 0.05; done; echo ok"]}}
            judges: [{{name: ok, check: "return 'ok' in outputs['stdout']"}}]
            """
        )
        project.cases(6)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "eval.yaml"),
                *("-p", "no:cacheprovider", "--agent-eval-dask", cluster.address),
            ],
            cwd=project.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        pids = Path(f"{gate}.pids")
        for _ in range(600):
            started = pids.read_text().split() if pids.exists() else []
            if len(started) >= 4 and str(victim.pid) in started:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(process.communicate(timeout=10))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        gate.touch()
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        lines = (project.latest / "results.jsonl").read_text().splitlines()
        assert sorted(json.loads(line)["case"] for line in lines) == [
            f"case-{number:03d}" for number in range(1, 7)
        ]
        assert project.summary()["status"] == {"passed": 6}
    finally:
        cluster.close()


def test_ctrl_c_ends_the_agents_on_the_workers(project: Project, cluster: DaskCluster) -> None:
    marks = project.path / "marks"
    project.suite(
        f"""\
        dataset: {{path: cases}}
        runner: {{type: cli, command: ["sh", "-c", "echo $$ >> {marks}; exec sleep 300"]}}
        judges: [{{name: ok, check: return True}}]
        """
    )
    project.cases(3)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-q", "eval.yaml"),
            "--agent-eval-dask",
            cluster.address,
        ],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for _ in range(600):
        if marks.exists() and len(marks.read_text().split()) == 3:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    for _ in range(200):
        left = [pid for pid in marks.read_text().split() if Path("/proc", pid).exists()]
        if not left:
            break
        time.sleep(0.05)
    assert not left


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--agent-eval-dask", "tcp://127.0.0.1:9"), "*no Dask scheduler answers there*"),
        (("--agent-eval-dask", "nonsense"), "*no address of a Dask scheduler*"),
    ],
)
def test_no_cluster_there(project: Project, arguments: tuple[str, ...], message: str) -> None:
    pytest.importorskip("distributed")
    project.suite()
    project.cases(1)
    result = project.subprocess("--agent-eval", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_fixture_cannot_travel(project: Project, cluster: DaskCluster) -> None:
    project.suite("dataset: {path: cases}\nrunner: {type: python, function: 'fixture:mine'}\n")
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef mine():\n    return len\n")
    project.cases(1)
    result = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a fixture lives in this process*"])


def test_a_model_is_not_asked_from_there(project: Project, cluster: DaskCluster) -> None:
    project.suite(
        "dataset: {path: cases}\nrunner: {type: litellm}\nexecution: {prompt: x}\n"
        "models: {skill: openai/some-model}\n"
    )
    project.cases(1)
    result = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a model is asked from this process*"])


def test_human_labels_stay_at_home(project: Project, cluster: DaskCluster) -> None:
    project.suite(
        """\
        dataset: {path: evals}
        runner: {type: cli, command: "find {config_dir}"}
        judges:
          - name: ok
            labels: human/./labels.yaml
            check: return True
            examples: {source: human/scored.yaml}
        """
    )
    project.write("human/labels.yaml", "case-001: true\n")
    project.write("human/scored.yaml", "case-001: {value: true, output: x}\n")
    project.write("human/guide.md", "how to label\n")
    project.case("case-001", dataset="evals")
    ran = project.subprocess("--agent-eval", "--agent-eval-dask", cluster.address)
    ran.assert_outcomes(passed=1)
    found = (project.latest / "cases/case-001/1/stdout.log").read_text()
    assert "human/guide.md" in found
    assert "labels.yaml" not in found
    assert "scored.yaml" not in found
    assert project.summary()["calibration"]["ok"]["compared_cases"] == 1
