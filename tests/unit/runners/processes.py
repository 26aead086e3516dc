"""Looking at processes in another way than the code under test."""

from __future__ import annotations

import os
from pathlib import Path


def marked(identity: str) -> list[int]:
    """Running processes that carry the marker, by an independent way of looking."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environ = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"AGENT_EVAL_TRIAL={identity}".encode() in environ.split(b"\0") and state != "Z":
                found.append(int(entry.name))
    return found
