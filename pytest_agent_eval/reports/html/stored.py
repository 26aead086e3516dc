"""Reading of a trial's record no more than is shown: heads and tails of files, events, images."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

from pytest_agent_eval.reports.html.budget import LARGEST_IMAGE, Purse, Text

__all__ = ["Images", "events", "files", "head", "log", "record_json", "tree"]

RECORD, EVENTS, FILES, MODIFIED = "record.json", "events.jsonl", "files", "_modified"
_NOT_SHOWN = ("output/events.jsonl", "output/metrics.json")
"""They are shown as events and as cost."""
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
)
_FILES_SHOWN = 40
_FILES_LISTED = 400
_LONGEST_RECORD = 64 * 1024 * 1024
_BINARY_SHARE = 0.3
_LOOK = 8192


class Images:
    """The bytes that are left for the images of all trials."""

    def __init__(self, left: int) -> None:
        self.left = left

    def url(self, path: str, size: int, kind: str) -> str | None:
        """A ``data:`` address of an image, or None if there is no room for it."""
        if size > min(self.left, LARGEST_IMAGE):
            return None
        with open(path, "rb") as stream:
            data = stream.read(size)
        self.left -= len(data)
        return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def record_json(directory: str) -> dict[str, Any]:
    """What ``record.json`` holds; empty where it cannot be used."""
    path = os.path.join(directory, RECORD)
    try:
        with open(path, "rb") as stream:
            data = json.loads(stream.read(_LONGEST_RECORD))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def tree(directory: str) -> dict[str, int]:
    """Relative path -> bytes of each regular file below a directory, sorted; links are passed
    over. At most some thousands: what is there and not listed is counted by nobody.
    """
    found: dict[str, int] = {}
    pending = [""]
    while pending and len(found) < 10_000:
        here = pending.pop()
        try:
            with os.scandir(os.path.join(directory, here) if here else directory) as entries:
                for entry in entries:
                    path = f"{here}/{entry.name}" if here else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        found[path] = entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return dict(sorted(found.items()))


def head(path: str, size: int) -> bytes:
    """The first bytes of a file; nothing where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(max(size, 0))
    except OSError:
        return b""


def log(path: str, size: int, purse: Purse, part: float, see: str) -> Text:
    """The end of a log file."""
    most = purse.share(part)
    try:
        with open(path, "rb") as stream:
            if size > most:
                stream.seek(size - most)
            data = stream.read(most)
    except OSError:
        return ""
    return purse.piece(data, size, see, end=True)


def events(path: str, size: int, purse: Purse, part: float) -> tuple[list[dict[str, Any]], int]:
    """The first events of a trial, long texts in them cut, and how many bytes of them are not
    there because there is no room.
    """
    most = purse.share(part)
    data = head(path, min(size, most * 4))
    longest = max(most // 6, 400)
    found, used, read = [], 0, 0
    for line in data.splitlines(keepends=True):
        if used > most or (read + len(line) >= len(data) and len(data) < size):
            break
        read += len(line)
        event = _event(line, longest)
        if event is not None:
            used += sum(len(value) for value in event.values() if isinstance(value, str)) + 40
            found.append(event)
    purse.left -= min(used, purse.left)
    return found, size - read


def _event(line: bytes, longest: int) -> dict[str, Any] | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    event: dict[str, Any] = {"type": str(raw.get("type", "other"))}
    for key in ("agent", "name", "id", "tier"):
        if isinstance(raw.get(key), str) and not (key == "agent" and raw[key] == "root"):
            event[key] = raw[key][:200]
    if raw.get("is_error"):
        event["is_error"] = True
    body = raw if event["type"] == "other" else None
    for key, value in (
        ("text", raw.get("text", raw.get("result", body))),
        ("input", raw.get("input", raw.get("options"))),
        ("answer", raw.get("answer")),
    ):
        if value is not None:
            text = value if isinstance(value, str) else _json(value)
            event[key] = text[:longest]
            if len(text) > longest:
                event[f"{key}_cut"] = len(text) - longest
    return event


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return str(type(value).__name__)


def files(
    directory: str,
    sizes: dict[str, int],
    purse: Purse,
    part: float,
    images: Images,
    see: str,
    *,
    shown: int = _FILES_SHOWN,
) -> Iterator[dict[str, Any]]:
    """What is shown of the files that an agent left.

    Args:
        directory: of the record.
        sizes: of all files in it; those below ``files/`` are meant.
        purse: of the trial.
        part: of the purse for the texts of all files.
        images: the room for images.
        see: path of the record, for what is cut.
        shown: how many have their contents shown; the others are listed.

    Yields:
        ``{path, size}`` with ``text``, ``src`` of an image, or ``binary``.
    """
    names = [path for path in sizes if path.startswith(f"{FILES}/")]
    names = [path for path in names if path[len(FILES) + 1 :] not in _NOT_SHOWN]
    room = purse.share(part)
    spent = Purse(room)
    for index, path in enumerate(names[:_FILES_LISTED]):
        size = sizes[path]
        entry: dict[str, Any] = {"path": path[len(FILES) + 1 :], "size": size}
        if index < shown:
            left = min(shown, len(names)) - index
            # An even share of what is left, but a lone long file may have half of it.
            share = max(1.0 / left, 0.5 if left > 1 else 1.0)
            entry |= _content(os.path.join(directory, path), size, spent, share, images, see, path)
        yield entry
    purse.left -= room - max(spent.left, 0)
    if len(names) > _FILES_LISTED:
        yield {"more": len(names) - _FILES_LISTED}


def _content(
    full: str, size: int, purse: Purse, share: float, images: Images, see: str, path: str
) -> dict[str, Any]:
    most = purse.share(share)
    data = head(full, min(size, max(most, _LOOK)))
    kind = _image(data)
    if kind is not None:
        try:
            url = images.url(full, size, kind)
        except OSError:
            url = None
        return {"src": url} if url else {"image": kind}
    if is_binary(data[:_LOOK]):
        return {"binary": True}
    return {"text": purse.piece(data[:most], size, f"{see}/{path}")}


def _image(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: as the plugin's records tell it."""
    if b"\0" in data:
        return True
    text = data.decode("utf-8", "replace")
    return text.count("\ufffd") > len(text) * _BINARY_SHARE
