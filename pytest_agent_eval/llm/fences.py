"""Data in a prompt, between fences: what a model reads there never speaks to it.

Whatever is untrusted stands between two lines that hold a digest of what is between them, so that
nobody can write the second one in advance.
"""

from __future__ import annotations

import re

import xxhash

__all__ = ["LONGEST", "fenced"]

LONGEST = 100_000
"""Characters of one text that a model is shown: its beginning and its end."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
    "|[\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, and characters that are nothing to see: they can make a text look
like another one."""


def fenced(text: str, limit: int = LONGEST) -> str:
    """The text between its fences, shortened, with what is invisible in it made visible."""
    if len(text) > limit:
        half = limit // 2
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"
    text = _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    mark = xxhash.xxh3_64_hexdigest(text.encode("utf-8", "surrogatepass"))
    return f"\n[data {mark} begins]\n{text}\n[data {mark} ends]\n"
