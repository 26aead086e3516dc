"""``agent-eval schema``: a JSON Schema of eval.yaml."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["write_schema"]


def write_schema(output: str | None) -> int:
    """Write the schema to a file, or print it.

    Raises:
        OSError: the file cannot be written.
    """
    from pytest_agent_eval.suite.schema import json_schema

    text = json.dumps(json_schema(), indent=2, ensure_ascii=False)
    if output is None:
        print(text)
        return 0
    Path(output).write_text(text + "\n", encoding="utf-8")
    print(f"wrote {output}; point your editor at it, for example with a first line in eval.yaml:")
    print(f"# yaml-language-server: $schema={output}")
    return 0
