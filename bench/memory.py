"""Peak memory of pytest with 100 and with 10,000 cases whose agents each print 1 MiB.

The floor is the run with 100 cases. It needs 20 GiB of disk: what the agents print is kept as their
log, and as their final message in the record.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from measure import run

FEW, MANY = 100, 10_000
BOUND_MB = 100

SUITE = """\
name: bench
dataset: {path: cases}
runner: {type: cli, command: ["sh", "-c", "yes one more line of output | head -c 1048576"]}
judges:
  - {name: worked, check: "return outputs['exit_code'] == 0, 'it ended well'"}
"""


def main(many: int = MANY) -> int:
    """Write the project, measure, print one line."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "eval.yaml").write_text(SUITE)
        peaks = []
        for count in (FEW, many):
            for number in range(count):
                case = root / "cases" / f"case-{number:05d}"
                case.mkdir(parents=True, exist_ok=True)
                (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"]
            peaks.append(run(command, root, {"TMPDIR": directory}))
            shutil.rmtree(root / ".agent-eval")
        grown = (peaks[1].rss - peaks[0].rss) * 1.048576  # MiB -> MB
        kept = grown < BOUND_MB
        print(
            f"{many:,} cases of 1 MiB of output: {peaks[1].rss:.0f} MiB, {FEW} cases: "
            f"{peaks[0].rss:.0f} MiB, grown by {grown:.0f} MB (bound {BOUND_MB}) "
            f"{'ok' if kept else 'MISSED'}; {peaks[1].wall:.0f} s"
        )
        return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
