"""500 verdicts of a model on loopback that answers in 50 ms, 32 at once, against waiting alone.

Two things are measured in whole sessions of pytest:

- how much longer than a session whose judge asks nobody it takes, beyond the import of LiteLLM,
  which is timed by itself: the floor is 500 / 32 answers of 50 ms, one after the other;
- when the first agent starts, with and without a model to ask.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from measure import run, scratch

CASES = 500
AT_ONCE = 32
ANSWER_S = 0.05
FLOOR_S = -(-CASES // AT_ONCE) * ANSWER_S
BOUND = 1.5
ROUNDS = 3

HEAD = """\
dataset: {path: cases}
runner: {type: python, function: "agent:answer"}
models: {judge: openai/m}
judges:
"""
ASKS = "  - {name: polite, llm_rubric: Is it polite?, feedback_type: bool}\n"
ASKS_NOBODY = "  - {name: polite, check: return True}\n"
AGENT = """\
import os, time

def answer(task):
    try:
        with open(os.environ["FIRST"], "x") as stream:
            stream.write(repr(time.time()))
    except FileExistsError:
        pass
    return "good morning " + task.input["message"]
"""
VERDICT = {"rationale": "so it is", "passed": True}
CALL = {"name": "submit_evaluation", "arguments": json.dumps(VERDICT)}
MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": CALL}],
}
BODY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": MESSAGE}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
    }
).encode()


class Handler(BaseHTTPRequestHandler):
    """The model."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Give the verdict, after a while."""
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_S)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Its server, which lets all who ask at once wait in line."""

    daemon_threads = True
    request_queue_size = 128


def serve() -> None:
    """Answer until the process is killed; the address is the first line printed."""
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()


ALONE = """\
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pytest_agent_eval.llm.provider import load

litellm = load()
function = {"name": "submit_evaluation", "parameters": {"type": "object", "properties": {}}}
more = {
    "tools": [{"type": "function", "function": function}],
    "tool_choice": {"type": "function", "function": {"name": "submit_evaluation"}},
    "messages": [{"role": "user", "content": "Is it polite?"}],
    "timeout": 60.0,
    "max_retries": 0,
}

def ask(_):
    litellm.completion("openai/m", **more)

ask(0)
with ThreadPoolExecutor(int(sys.argv[2])) as threads:
    began, worked = time.perf_counter(), time.process_time()
    list(threads.map(ask, range(int(sys.argv[1]))))
    print(time.perf_counter() - began, time.process_time() - worked)
"""


def alone(url: str) -> tuple[float, float]:
    """Seconds, and seconds of a processor, that LiteLLM itself takes for as many calls."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(CASES), str(AT_ONCE)],
        env={**os.environ, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "k"},
        capture_output=True,
        text=True,
        check=True,
    )
    wall, worked = map(float, done.stdout.split())
    return wall, worked


def imported() -> float:
    """Seconds that a process needs until LiteLLM can be called."""
    code = "from pytest_agent_eval.llm.provider import load; load().completion"
    return run([sys.executable, "-c", code], Path.cwd()).wall


def session(root: Path, suite: str, url: str) -> tuple[float, float]:
    """Seconds of a whole session, and those until its first agent started."""
    (root / "eval.yaml").write_text(suite)
    first = root / "first"
    first.unlink(missing_ok=True)
    subprocess.run(["rm", "-rf", str(root / "recordings"), str(root / ".agent-eval")], check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"]
    command += ["--agent-eval-judge-parallelism", str(AT_ONCE)]
    env = {"FIRST": str(first), "OPENAI_API_BASE": url, "OPENAI_API_KEY": "k", "CI": ""}
    started = time.time()
    wall = run(command, root, env).wall
    return wall, float(first.read_text()) - started


def main() -> int:
    """Write the project, measure, print three lines."""
    server = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "serve"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        with scratch() as root:
            (root / "pytest.ini").write_text("[pytest]\n")
            (root / "agent.py").write_text(AGENT)
            for number in range(CASES):
                case = root / "cases" / f"case-{number:04d}"
                case.mkdir(parents=True)
                (case / "input.yaml").write_text(f"message: number {number}\n")
            imports, plain, asking, least = [], [], [], []
            for _ in range(ROUNDS):
                imports.append(imported())
                plain.append(session(root, HEAD + ASKS_NOBODY, url))
                asking.append(session(root, HEAD + ASKS, url))
                least.append(alone(url))
    finally:
        server.kill()
        server.wait()
    loading = statistics.median(imports)
    without = statistics.median(wall for wall, _ in plain)
    whole = statistics.median(wall for wall, _ in asking)
    extra = whole - without - loading
    print(
        f"{CASES} verdicts of a model that answers in {ANSWER_S * 1000:.0f} ms, {AT_ONCE} at once: "
        f"{whole:.2f} s, of which {without:.2f} without a model and {loading:.2f} for LiteLLM; "
        f"{extra:.2f} s are {extra / FLOOR_S:.2f} x the floor of {FLOOR_S:.2f} s (bound {BOUND})"
    )
    calls = statistics.median(wall for wall, _ in least)
    worked = statistics.median(worked for _, worked in least)
    print(
        f"least: LiteLLM by itself {calls:.2f} s ({calls / FLOOR_S:.2f} x), {worked:.2f} s of a "
        f"processor, {worked / CASES * 1000:.1f} ms a call"
    )
    late = statistics.median(first for _, first in asking)
    early = statistics.median(first for _, first in plain)
    print(f"first agent after {late:.2f} s, without a model {early:.2f} s: {late / early:.2f} x")
    return 0 if extra <= BOUND * FLOOR_S else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    sys.exit(main())
