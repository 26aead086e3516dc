"""Values that cross between the tests and the candidate: as JSON, so that none of it is code."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Unfit", "decode", "encode"]

_SEQUENCES: tuple[tuple[str, Any], ...] = (
    ("list", list),
    ("tuple", tuple),
    ("set", set),
    ("frozenset", frozenset),
)
_ONE_WAY: tuple[type[Any], ...] = (
    Iterator,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    deque,
)


class Unfit(Exception):
    """A value that has no form outside its own process; the message names its type."""


def encode(value: Any) -> Any:
    """A value as JSON types; subclasses become what they are a subclass of, iterators lists.

    Raises:
        Unfit: an object of another class, a function, a structure that contains itself.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise Unfit("a structure that is nested too deeply") from None


def decode(data: Any) -> Any:
    """The inverse of :func:`encode`.

    Raises:
        ValueError, TypeError: not what :func:`encode` makes.
    """
    if not isinstance(data, dict):
        if isinstance(data, list):
            raise ValueError("not an encoded value")
        return data
    ((kind, inner),) = data.items()
    if kind == "dict":
        return {decode(key): decode(item) for key, item in inner}
    if kind == "bytes":
        return inner.encode("latin-1")
    if kind == "range":
        return range(*inner)
    if kind == "complex":
        return complex(*inner)
    return dict(_SEQUENCES)[kind](decode(item) for item in inner)


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return value if type(value) is plain else plain(value)
    for kind, sequence in _SEQUENCES:
        if isinstance(value, sequence):
            return {kind: [_encode(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).decode("latin-1")}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, _ONE_WAY):
        return {"list": [_encode(item) for item in value]}
    if hasattr(value, "shape") and callable(getattr(value, "tolist", None)):  # numpy
        return _encode(value.tolist())
    raise Unfit(type(value).__name__)
