"""What an installed plugin costs a project that has no suite, in milliseconds."""

from __future__ import annotations

import statistics
import sys

from measure import run, scratch

BOUND_MS = 20.0
ROUNDS = 21


def main() -> int:
    """Run ``pytest --collect-only`` in an empty directory with and without the plugin, in turn."""
    pytest = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    with scratch() as root:
        (root / "pytest.ini").write_text("[pytest]\n")
        run(pytest, root)
        differences = []
        for _ in range(ROUNDS):
            without = run([*pytest, "-p", "no:agent-eval"], root)
            differences.append((run(pytest, root).cpu - without.cpu) * 1000)
    median = statistics.median(differences)
    kept = median <= BOUND_MS
    print(
        f"start-up grows by {median:.1f} ms cpu (bound {BOUND_MS:g}) {'ok' if kept else 'MISSED'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
