"""Answer the one customer message of a workspace: ``python3 inbox.py [WORKSPACE]``.

Reads ``input.yaml``, ``orders.yaml`` and ``policies/`` there; writes ``output/``.
"""

from __future__ import annotations

import sys

try:
    from agent.workspace import answer
except ModuleNotFoundError as missing:  # the interpreter on PATH is not the one with PyYAML
    sys.exit(f"inbox.py: {missing}; activate the environment this project is installed in")

if __name__ == "__main__":
    answer(sys.argv[1] if len(sys.argv) > 1 else ".")
