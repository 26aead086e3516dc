"""Cost of 1,000 cases with an in-process runner and three judges against plain test functions.

The floor is a test module with as many functions that take ``tmp_path`` and assert three times.
"""

from __future__ import annotations

import sys

from measure import compare, report, scratch

CASES = 1_000
BOUND = 2.0

SUITE = """\
name: bench
dataset: {path: cases}
runner: {type: python, function: "agent:answer"}
judges:
  - {name: answered, check: "return outputs['final_message'] == 'ok', 'the agent said ok'"}
  - {name: fast, builtin: duration_budget, arguments: {max_seconds: 60}}
  - {name: quiet, check: "return not outputs['stderr'], 'nothing on stderr'"}
"""

FLOOR = """\
import pytest


@pytest.mark.parametrize("number", range({cases}))
def test_case(number, tmp_path):
    answer = "ok"
    assert answer == "ok"
    assert number < 100_000
    assert not answer.startswith("x")
"""


def main() -> int:
    """Write the project, measure, print one line."""
    with scratch() as root:
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "test_floor.py").write_text(FLOOR.format(cases=CASES))
        (root / "eval.yaml").write_text(SUITE)
        (root / "agent.py").write_text("def answer(task):\n    return 'ok'\n")
        for number in range(CASES):
            case = root / "cases" / f"case-{number:04d}"
            case.mkdir(parents=True)
            (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")
            (case / "annotations.yaml").write_text("category: delivery\ntags: [short]\n")
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        result = compare([*pytest, "test_floor.py"], [*pytest, "eval.yaml"], root, rounds=5)
        return 0 if report(f"overhead of {CASES:,} cases", *result, BOUND) else 1


if __name__ == "__main__":
    sys.exit(main())
