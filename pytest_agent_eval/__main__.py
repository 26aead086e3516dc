"""``python -m pytest_agent_eval``: the same as ``agent-eval``."""

from __future__ import annotations

import sys

from pytest_agent_eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
