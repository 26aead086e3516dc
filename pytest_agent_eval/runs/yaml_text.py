"""JSON-like data as YAML text: deterministic, in its own order, unicode as it is.

Written here because PyYAML takes ten times as long, and a summary has a block for each case. Only
what JSON can hold is written, so the grammar is small: block mappings and lists, plain scalars
where they can be nothing else, double-quoted ones everywhere else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["dump_yaml"]

# A word that YAML 1.1 reads as text wherever it stands: begins with a letter, holds nothing that
# ends a scalar, and is no other spelling of a boolean or null.
_PLAIN = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z](?:[\w./()%+-]| (?=[\w./(%+]))*",
    re.IGNORECASE | re.ASCII,
)
# Characters that YAML wants escaped also inside quotes.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def dump_yaml(data: Mapping[str, Any]) -> bytes:
    """UTF-8 YAML of a mapping of JSON types.

    Raises:
        ValueError: it holds a lone surrogate, or a number that is not finite.
    """
    if not data:
        return b"{}\n"
    lines: list[str] = []
    _mapping(data, "", "", lines)
    lines.append("")
    return "\n".join(lines).encode()


def _mapping(data: Mapping[str, Any], first: str, indent: str, lines: list[str]) -> None:
    """Append the lines of a mapping; the first one is introduced by ``first``."""
    lead = first
    for key, value in data.items():
        _entry(value, f"{lead}{_text(key)}:", indent, lines)
        lead = indent


def _entry(value: Any, lead: str, indent: str, lines: list[str]) -> None:
    """Append one value behind ``key:`` or ``-``."""
    if isinstance(value, Mapping) and value:
        if lead.endswith("-"):
            _mapping(value, f"{lead} ", f"{indent}  ", lines)
        else:
            lines.append(lead)
            _mapping(value, f"{indent}  ", f"{indent}  ", lines)
    elif isinstance(value, list | tuple) and value:
        lines.append(lead)
        # A list in a list is indented; one in a mapping may stand below its key.
        inner = f"{indent}  " if lead.endswith("-") else indent
        for item in value:
            _entry(item, f"{inner}-", inner, lines)
    else:
        lines.append(f"{lead} {_scalar(value)}")


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _number(value: float) -> str:
    """YAML 1.1 takes ``1e-05`` for text: a number needs a point and a signed exponent."""
    text = repr(value)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    sign = "" if exponent[0] in "+-" else "+"
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{sign}{exponent}"


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and len(value) < 200:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)
