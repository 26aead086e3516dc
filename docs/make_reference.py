"""Write docs/reference.md from the models that check an eval.yaml; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_agent_eval.suite.reference import reference_markdown

PAGE = Path(__file__).with_name("reference.md")


def main() -> int:
    """Return 1 if ``--check`` finds a difference."""
    text = reference_markdown()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE.name} is out of date: run python docs/make_reference.py\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
