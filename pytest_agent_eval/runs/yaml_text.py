"""JSON-like data as YAML text: deterministic, in its own order, unicode as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

__all__ = ["dump_yaml"]

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        """Anchors say nothing here and make the file harder to read."""
        return True


def dump_yaml(data: Mapping[str, Any]) -> bytes:
    """UTF-8 YAML of a mapping of JSON types, which must hold no lone surrogates."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text.encode()
