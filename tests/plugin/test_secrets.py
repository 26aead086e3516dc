"""A secret of the caller's environment is in nothing that is stored or printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import Project

SECRET = "sk-live/0123+abc=def 'quoted\" \\ and ünicode"

COMMAND = """\
import json, os, pathlib, sys
secret = os.environ["SERVICE_API_KEY"]
name = secret.replace("/", "_")[:40]
print("the key is", secret, "and in JSON", json.dumps({"key": secret}))
print(secret[:10], end="", file=sys.stderr); print(secret[10:], file=sys.stderr)
out = pathlib.Path("output")
(out / "plain-sk-live.txt").write_text(secret)
pathlib.Path("output", os.environ["OTHER_TOKEN"] + ".txt").write_text("x" + secret + "y")
(out / "metrics.json").write_text(json.dumps({"model": secret, "cost_usd": 0.1}))
(out / "events.jsonl").write_text(json.dumps({"type": "assistant", "content": secret}) + "\\n")
sys.exit(int(sys.argv[1]))
"""

SUITE = """\
name: secrets
dataset: {path: cases}
execution: {env: {OTHER_TOKEN: token-for-a-file-name}}
runner: {type: cli, command: "python {config_dir}/agent.py {code}"}
judges:
  - name: tells
    check: |
      import os
      key = os.environ['SERVICE_API_KEY']
      return False, f"{key} was in {outputs['stdout']}"
  - name: raises
    check: |
      import os
      print(os.environ['SERVICE_API_KEY'])
      raise ValueError(os.environ['SERVICE_API_KEY'])
"""

PYTHON_SUITE = """\
name: talkative
dataset: {path: cases}
runner: {type: python, function: "inproc:answer"}
judges: [{name: never, check: "return False, 'no'"}]
"""

PYTHON = """\
import os, sys

def answer(task):
    print(os.environ["SERVICE_API_KEY"])
    print(os.environ["SERVICE_API_KEY"], file=sys.stderr)
    if "boom" in task.input["message"]:
        raise RuntimeError(os.environ["SERVICE_API_KEY"])
    return os.environ["SERVICE_API_KEY"]
"""


def _forms() -> list[bytes]:
    return [SECRET.encode(), b"token-for-a-file-name", b"0123+abc=def"]


def _found_in(root: Path) -> list[str]:
    found = []
    for path in root.rglob("*"):
        found += [str(path) for form in _forms() if form in str(path).encode()]
        if path.is_file():
            found += [str(path) for form in _forms() if form in path.read_bytes()]
    return found


@pytest.mark.parametrize("workers", [(), ("-n", "3")])
@pytest.mark.parametrize("kind", ["command", "python"])
def test_a_secret_is_found_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], kind: str
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", SECRET)
    if kind == "command":
        project.suite(SUITE)
        project.write("agent.py", COMMAND)
        project.case("case-001", {"message": "x", "code": 0})
        project.case("case-002", {"message": "x", "code": 3})
    else:
        project.suite(PYTHON_SUITE)
        project.write("inproc.py", PYTHON)
        project.case("case-001", {"message": "quiet"})
        project.case("case-002", {"message": "boom"})
    junit = project.path / "junit.xml"
    result = project.subprocess(
        "--agent-eval", "-vv", "-rA", f"--junitxml={junit}", "-o", "junit_logging=all", *workers
    )
    result.assert_outcomes(failed=2)
    printed = "\n".join((*result.outlines, *result.errlines)).encode()
    assert [form for form in _forms() if form in printed] == []
    assert [form for form in _forms() if form in junit.read_bytes()] == []
    assert _found_in(project.latest) == []
    stored = b"".join(path.read_bytes() for path in project.latest.rglob("*") if path.is_file())
    assert b"***SERVICE_API_KEY***" in stored
    assert b"***SERVICE_API_KEY***" in printed
    if kind == "command":
        names = {path.name for path in (project.latest / "cases").rglob("*.txt")}
        assert "***OTHER_TOKEN***.txt" in names
