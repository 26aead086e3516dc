"""What an agent prints, writes and is told about changes no report's form."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree as ET

import pytest

from tests.plugin.conftest import Project
from tests.unit.reports.html_page import ELEMENTS, Page

HOSTILE = (
    "<script>alert(1)</script> ]]> --> \x1b[31mred\x1b[0m \x00 \u202egnp.exe \u200b | `x` ${{a}}"
)

AGENT = f"""\
import sys

hostile = {HOSTILE!r}
out = sys.stdout.buffer
out.write(hostile.encode() + b" \\xff\\xfe\\xed\\xa0\\x80\\n")
out.write(b"\\x1b]0;title\\x07\\r" + b"<b>" * (10 * 1024 * 1024 // 3) + b"\\n")
out.write(hostile.encode() + b"\\n")
sys.stderr.write(hostile)
open("output/" + "<img src=x onerror=alert(1)> ]]> \\x1b[31m \\u202e.txt", "w").write(hostile)
sys.exit(3)
"""

SUITE = """\
name: "<b>suite</b> ]]> \\e[31m"
dataset: {path: cases}
runner: {type: cli, command: [python3, "{project}/agent.py"]}
judges:
  - name: "judge <i> | ]]>"
    check: |
      return False, outputs['stdout'][:200] + outputs['stdout'][-200:]
  - name: raises
    check: |
      raise ValueError(outputs['stdout'][:200])
"""


def test_reports_keep_their_form(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.suite(SUITE.replace("{project}", str(project.path)))
    project.case("<u>case & ]]>", {"message": HOSTILE}, {"tags": {"a<b": HOSTILE}})
    suffixes = (".html", ".md", ".json", ".csv")
    asked = [word for suffix in suffixes for word in ("--agent-eval-report", f"r{suffix}")]
    result = project.subprocess(
        "--agent-eval", "-rA", "-vv", "--color=no", "--junitxml=junit.xml", *asked
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = result.stdout.str()
    assert "ValueError" in shown
    assert not {"\x1b", "\x00", "\x07", "\u202e", "\u200b"} & set(shown)
    assert "INTERNALERROR" not in shown

    tree = ET.parse(project.path / "junit.xml")
    [case] = tree.iter("testcase")
    assert case.get("name") == "<u>case & ]]>"
    [failure] = case.iter("failure")
    assert "<script>alert(1)</script> ]]>" in (failure.text or "")
    assert [*failure] == []

    data = json.loads((project.path / "r.json").read_bytes())
    assert data["trials"][0]["verdicts"][0]["judge"] == "judge <i> | ]]>"
    with open(project.path / "r.csv", newline="") as file:
        [row] = csv.DictReader(file)
    assert row["judge <i> | ]]>"] == "false"
    assert "\x1b" not in row["judge <i> | ]]>.rationale"]
    text = (project.path / "r.md").read_text()
    assert "<script>" not in text
    assert "<b>" not in text
    assert not {"\x1b", "\x00", "\u202e"} & set(text)
    page = Page((project.path / "r.html").read_text())
    assert {tag for tag, _ in page.elements} == ELEMENTS
    said = [verdict["judge"] for verdict in page.of("<u>")["trials"][0]["verdicts"]]
    assert said[:2] == ["execution", "judge <i> | ]]>"]
    for path in project.path.glob("r.*"):
        assert path.stat().st_size < 1_000_000
