"""Cost of judging 1,000 stored trials again against plain test functions that assert as often."""

from __future__ import annotations

import sys

from measure import compare, report, run, scratch
from overhead import CASES, FLOOR, SUITE

BOUND = 2.0


def main() -> int:
    """Write the project, run it once, measure judging it again, print one line."""
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
        run([*pytest, "eval.yaml"], root)
        (stored,) = (path.name for path in (root / ".agent-eval" / "runs").glob("2*"))
        again = [*pytest, "eval.yaml", f"--agent-eval-rescore={stored}"]
        result = compare([*pytest, "test_floor.py"], again, root, rounds=3)
        return 0 if report(f"judging {CASES:,} stored trials again", *result, BOUND) else 1


if __name__ == "__main__":
    sys.exit(main())
