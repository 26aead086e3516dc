"""The plugin's own hooks, from a conftest.py."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .conftest import ECHO, Project

CONFTEST = """\
from pytest_agent_eval import Execution


class Shout:
    def __init__(self, context):
        self.suffix = context.suite.config.runner.settings.get("suffix", "!")

    def run(self, task):
        return Execution(output=task.input["message"].upper() + self.suffix)


class EndsWith:
    def __init__(self, context):
        self.ending = context.config.extra

    def __call__(self, record):
        return record["final_message"].endswith(self.ending), f"looked for {self.ending!r}"


def pytest_agent_eval_runner_types(config):
    return {"shout": Shout}


def pytest_agent_eval_judge_kinds(config):
    return {"ends_with": EndsWith}


def pytest_agent_eval_trial_finished(config, result):
    print(f"FINISHED {result.case} {result.status}")


def pytest_agent_eval_run_finished(config, summary):
    print(f"RUN {summary.complete}")
"""

SUITE = """\
dataset: {path: cases}
runner: {type: shout, settings: {suffix: "?"}}
judges:
  - {name: asks, ends_with: "?"}
  - {name: shouts, ends_with: "!"}
thresholds: {shouts: {max_error_rate: 0}}
"""


def test_runner_types_and_judge_kinds_from_a_conftest(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.suite(SUITE)
    project.case("case-001")
    result = project.run("--agent-eval", "-s")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*FINISHED case-001 tolerated*", "*RUN True*"])
    verdicts = {verdict.judge: verdict for verdict in project.results()["case-001"].verdicts}
    assert verdicts["asks"].value is True
    assert verdicts["shouts"].value is False


def test_they_apply_below_their_directory_only(project: Project) -> None:
    project.write("a/conftest.py", CONFTEST)
    project.suite(SUITE, name="a/eval.yaml")
    project.suite(SUITE, name="b/eval.yaml")
    project.case("case-001", dataset="a/cases")
    project.case("case-001", dataset="b/cases")
    project.run("a/eval.yaml", "-s").stdout.fnmatch_lines(["*1 tolerated*"])
    result = project.run("b/eval.yaml")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*runner.type*shout*"])


def test_under_xdist_the_controller_hears_of_every_trial(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.suite(SUITE)
    project.cases(4)
    result = project.subprocess("--agent-eval", "-s", "-n", "2")
    text = result.stdout.str()
    assert sorted(re.findall(r"FINISHED (case-\d+) tolerated", text)) == [
        f"case-{number:03d}" for number in range(1, 5)
    ]
    assert text.count("RUN True") == 1


class _Service(BaseHTTPRequestHandler):
    """The service that the documented runner asks."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"text": f"about: {asked['text']}", "turns": 2}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def test_the_documented_examples_run(project: Project) -> None:
    """The runner type and the judge kind of docs/extending.md work as they are printed."""
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    text = page.read_text(encoding="utf-8")
    python = re.findall(r"```python\n# conftest\.py\n(.*?)```", text, re.DOTALL)
    runner, judges = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[:2]
    future = "from __future__ import annotations\n"
    project.write("conftest.py", future + "".join(part.replace(future, "") for part in python[:2]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/answer"
        runner = re.sub(r"http://[^\"]+", url, runner)
        judges = judges.replace("make -s check", "test -f input.yaml")
        project.suite(f"dataset: {{path: cases}}\n{runner}\n{judges}")
        project.case("case-001", {"message": "Where is my parcel?"})
        result = project.run("--agent-eval")
    finally:
        server.shutdown()
        server.server_close()
    assert result.ret == 0, result.stdout.str()
    stored = project.results()["case-001"]
    assert stored.usage.num_turns == 2
    assert stored.verdicts[0].value is True


def test_a_hook_with_a_typo_is_loud(project: Project) -> None:
    project.suite(ECHO)
    project.cases(1)
    project.write("conftest.py", "def pytest_agent_eval_runnertypes(config):\n    return {}\n")
    assert project.subprocess("--agent-eval").ret != 0
