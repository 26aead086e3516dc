"""The process in which LiteLLM lives: a line of JSON in, a line of JSON out, many at once.

It is a process of its own because LiteLLM takes 200 MB and seconds of an interpreter, reads and
sets variables, warns (which is an error in many test suites) and prints; and because a call of it
cannot be interrupted, but a process can be left.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict
from typing import Any, TextIO

from pytest_agent_eval.llm.errors import ProviderError
from pytest_agent_eval.llm.provider import call, load

__all__ = ["main"]


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    threading.Thread(target=load, daemon=True).start()
    lock = threading.Lock()
    for line in sys.stdin:
        asked = json.loads(line)
        threading.Thread(target=_answer, args=(asked, answers, lock), daemon=True).start()
    os._exit(0)  # calls that are still under way have nobody to tell


def _answer(asked: dict[str, Any], answers: TextIO, lock: threading.Lock) -> None:
    number = asked.pop("id")
    try:
        said: dict[str, Any] = {"reply": asdict(call(**asked))}
    except ProviderError as error:
        said = {
            "error": {
                "message": str(error),
                "status": error.status,
                "transient": error.transient,
                "retry_after": error.retry_after,
                "unfit": error.unfit,
            }
        }
    except BaseException as error:
        said = {"error": {"message": f"{type(error).__name__}: {error}"}}
    with lock:
        answers.write(json.dumps({"id": number, **said}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
