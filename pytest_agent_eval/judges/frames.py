"""What a judge raised -> one sentence, and a traceback of the user's own lines."""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from types import TracebackType
from typing import NamedTuple

from pytest_agent_eval.errors import AgentEvalError
from pytest_agent_eval.judges.verdict import shorten

__all__ = ["Frame", "describe", "render_traceback", "user_frames"]

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FOREIGN = tuple(
    {
        os.path.join(path, "")
        for key, path in sysconfig.get_paths().items()
        if key in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_MAX_FRAMES = 20


class Frame(NamedTuple):
    """One line of the user's code that was being carried out."""

    file: str
    line: int
    function: str


def describe(error: BaseException, *, check: bool = False) -> tuple[str, str]:
    """One sentence and the traceback.

    Args:
        error: what the judge raised.
        check: it is a ``check``, so an AssertionError deserves advice.

    Returns:
        ``KeyError: 'x' (eval.yaml:14)`` and the frames of the user's code, outermost first; the
        second is empty if no line of the user's code took part.
    """
    frames = user_frames(error.__traceback__)
    said = _message(error)
    where = f" ({os.path.basename(frames[-1].file)}:{frames[-1].line})" if frames else ""
    sentence = said + where
    if check and isinstance(error, AssertionError):
        sentence += "; a check returns its verdict: return (False, 'why') instead of assert"
    return sentence, render_traceback(frames, said)


def user_frames(trace: TracebackType | None) -> list[Frame]:
    """The frames that are neither this package's, the standard library's nor an installed one's."""
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_foreign(code.co_filename):
            frames.append(Frame(code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    return frames


def render_traceback(frames: list[Frame], said: str) -> str:
    """The frames with their source lines, then the message; empty without frames."""
    if not frames:
        return ""
    lines = []
    skipped = len(frames) - _MAX_FRAMES
    for frame in frames[:_MAX_FRAMES] if skipped <= 0 else frames[:1] + frames[-_MAX_FRAMES + 1 :]:
        lines.append(f"{frame.file}:{frame.line}: in {frame.function}")
        source = linecache.getline(frame.file, frame.line).strip()
        if source:
            lines.append(f"    {source}")
    if skipped > 0:
        lines.insert(2, f"    ... {skipped + 1} more frames ...")
    return "\n".join([*lines, said])


def _is_foreign(file: str) -> bool:
    if file.startswith(_OURS):
        return True
    return file.startswith(_FOREIGN) or file.startswith("<frozen ")


def _message(error: BaseException) -> str:
    """``KeyError: 'x'``, on one line. The error's own text may raise."""
    if isinstance(error, AgentEvalError):  # a sentence for people
        return shorten(str(error).split("\n", 1)[0].strip(), 500)
    try:
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
    except Exception:
        return type(error).__name__
    if isinstance(error, SyntaxError):  # its text begins with the file and an arrow
        text = f"{type(error).__name__}: {error.msg}"
    first = text.split("\n", 1)[0].strip()
    # Its class is named with its module, which says nothing for an error of this package.
    module = type(error).__module__
    if module not in ("builtins", "__main__") and first.startswith(module + "."):
        first = first[len(module) + 1 :]
    return shorten(first, 500)
