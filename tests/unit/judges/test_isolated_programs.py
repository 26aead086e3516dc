"""The programs that run produced code, called here in this process."""

from __future__ import annotations

import enum
import io
import json
import sys
from collections import Counter, OrderedDict, deque, namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.judges.isolated import codec, run_tests, serve_candidate

Point = namedtuple("Point", "x y")


class Grade(enum.IntEnum):
    GOOD = 1


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5)
    | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=3)
        | st.sets(st.text(max_size=2), max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_cross_unchanged(value: Any) -> None:
    crossed = codec.decode(json.loads(json.dumps(codec.encode(value))))
    assert crossed == value
    assert type(crossed) is type(value)


@pytest.mark.parametrize(
    ("value", "crossed"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (Point(1, 2), (1, 2)),
        (Grade.GOOD, 1),
        (deque([1]), [1]),
        (iter([1, 2]), [1, 2]),
        ((n for n in (1, 2)), [1, 2]),
        (map(abs, [-1]), [1]),
        ({1: 2}.keys(), [1]),
        ({1: 2}.items(), [(1, 2)]),
        (range(1, 9, 2), range(1, 9, 2)),
        (bytearray(b"a"), b"a"),
        (numpy.arange(3), [0, 1, 2]),
        (numpy.int64(3), 3),
    ],
)
def test_what_other_values_become(value: Any, crossed: Any) -> None:
    assert codec.decode(codec.encode(value)) == crossed


@pytest.mark.parametrize("value", [object(), abs, [object()], {1: object}, type])
def test_what_cannot_cross(value: Any) -> None:
    with pytest.raises(codec.Unfit):
        codec.encode(value)


@pytest.mark.parametrize("data", [[1], {}, {"list": [1], "tuple": [2]}, {"dict": [1]}, {"set": 3}])
def test_what_is_no_encoded_value(data: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        codec.decode(data)


def serve(tmp_path: Path, code: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    path = tmp_path / "code.py"
    path.write_text(code, "utf-8")
    asked = io.BytesIO(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
    replies = io.BytesIO()
    try:
        serve_candidate.serve(str(path), "served_candidate", asked, replies)
    finally:
        sys.modules.pop("served_candidate", None)
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def call(name: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"call": name, "args": codec.encode(list(args)), "kwargs": codec.encode(kwargs)}


def test_serving(tmp_path: Path) -> None:
    code = (
        "import math\nfrom collections import deque\n"
        "X = 3\nodd = object()\n"
        "class Own: pass\n"
        "class Mute(Exception):\n    def __str__(self): raise ValueError\n"
        "def f(x, *, y=0):\n    x.append(y)\n    return len(x)\n"
        "def g(): return Own()\n"
        "def h(): raise Mute\n"
        "def i():\n    raise SystemExit(3)\n"
    )
    names, *replies = serve(
        tmp_path, code, call("f", [1], y=2), call("g"), call("h"), call("i"), call("nothing")
    )
    assert names["names"] == {
        "math": {"module": "math"},
        "deque": {"class": ["collections", "deque"]},
        "X": {"value": 3},
        "odd": {"unfit": "object"},
        "Own": {"class": ["served_candidate", "Own"]},
        "Mute": {"class": ["served_candidate", "Mute"]},
        **{name: {"function": None} for name in "fghi"},
    }
    assert replies[0] == {"result": 2, "args": {"list": [{"list": [1, 2]}]}}
    assert replies[1] == {"unfit": "Own"}
    assert replies[2]["raised"]["classes"][0] == "Mute"
    assert replies[2]["raised"]["text"] == ""
    assert replies[3]["raised"] == {
        "classes": ["SystemExit", "BaseException", "object"],
        "text": "3",
        "line": 14,
    }
    assert replies[4]["raised"]["classes"][0] == "AttributeError"


def test_serving_what_does_not_load(tmp_path: Path) -> None:
    ((reply),) = serve(tmp_path, "x = 1\ndef (")
    assert reply["raised"]["classes"][0] == "SyntaxError"
    assert reply["raised"]["line"] == 2


@pytest.fixture
def own_modules() -> Iterator[None]:
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def carry_out(tmp_path: Path, code: str, tests: str, entry: str | None, **more: Any) -> Any:
    (tmp_path / "code.py").write_text(code, "utf-8")
    order = {
        "tests": tests,
        "entry_point": entry,
        "candidate": str(tmp_path / "code.py"),
        "module": "produced",
        "cwd": str(tmp_path),
        "shared": False,
        **more,
    }
    return run_tests.carry_out(order)


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("code", "tests", "entry", "error"),
    [
        ("def f(x): return x", "def check(c):\n    assert c(1) == 1", "f", ""),
        ("def f(x): return x", "from produced import f\nassert f(1) == 1", None, ""),
        ("X = 2", "assert X == 2", None, ""),
        ("def f(x): return x", "from produced import g", None, "cannot import name 'g'"),
        ("def f(x): return x", "import json\nassert f(1) == 2", None, "f(1) returned 1"),
        ("def f(x): return x", "assert f(x=1) == 2, 'why'", None, "f(x=1) returned 1"),
        ("def f(x): x()", "f(1)", None, "f(1) raised TypeError: 'int' object is not callable"),
        ("def f(): b'a'.decode('x')", "f()", None, "LookupError: unknown encoding: x"),
        ("def f(): b'\\xff'.decode()", "f()", None, "UnicodeError: 'utf-8' codec can't decode"),
        ("class E(BaseException): pass\ndef f(): raise E('x')", "f()", None, "RuntimeError: E: x"),
        ("def f(): return 'x' * 999", "assert not f()", None, "x..."),
        ("import os\ndef f(): os._exit(4)", "f()", None, "ended with exit status 4; f() did not"),
        ("import os\nos.kill(os.getpid(), 9)", "f()", None, "ended with signal 9"),
        ("import os\nos._exit(0)", "f()", None, "ended with exit status 0"),
        ("import os, threading\ndef f():\n    threading.Timer(0.05, os._exit, [0]).start()",
         "import time\nf()\ntime.sleep(0.5)\nf()\n", None, "ended with exit status 0"),
        ("import antigravity_none", "f()", None, "cannot be loaded: ModuleNotFoundError"),
        ("def f(x): return x", "def test_a():\n    assert f(1) == 2", None, "failed (tests:2)"),
        ("def f(x): return x", "raise AssertionError('own words')", None, "own words (tests:1)"),
        ("def f(x): return x", "assert f(1) and check_it(1)", None, "NameError"),
        ("def f(s): s.add(2)", "s = {1}\nf(s)\nassert s == {1, 2}", None, ""),
    ],
)  # fmt: skip
def test_carry_out(tmp_path: Path, code: str, tests: str, entry: str | None, error: str) -> None:
    report = carry_out(tmp_path, code, tests, entry)
    assert report["unfit"] is False
    assert error in report["error"] if error else not report["error"], report


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ('{"result": {"list": 3}, "args": {"list": []}}', "an answer that is none"),
        ('{"result": 1, "args": {"list": [1, 2]}}', "an answer that is none"),
        ("{}", "an answer that is none"),
        ("[]", "too long or none"),
        ("nonsense", "too long or none"),
    ],
)
def test_replies_that_are_forged(tmp_path: Path, reply: str, error: str) -> None:
    """The code may write to the descriptor by which its process answers; that gains nothing."""
    code = (
        "import os\n"
        "def f():\n"
        f"    line = {reply!r}.encode() + b'\\n'\n"
        "    for number in range(3, 20):\n"
        "        try: os.write(number, line)\n"
        "        except OSError: pass\n"
    )
    report = carry_out(tmp_path, code, "assert f() == 1", None)
    assert error in report["error"]


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("code", "tests", "error"),
    [
        ("class P: pass", "assert P()", "the tests use P, a class"),
        ("import antigravity", "assert antigravity", "the tests use antigravity, a module"),
        ("from json import nothing_here", "x", ""),
        ("x = object()", "assert x", "the tests use x, of type object"),
        ("def f(): return object()", "f()", "f returned a value of type object"),
        ("def f(x): return x", "f(object())", "the tests give f a value of type object"),
        ("def f(): return object()", "try: f()\nexcept BaseException: pass", "type object"),
        ("def f(): return 1", "assert 1", "the tests do not use the code"),
        ("from collections import deque\nX = 1", "assert deque([X])", ""),
        ("import os.path as p\nX = 1", "assert p.join('a') and X", ""),
    ],
)
def test_carry_out_what_cannot_cross(tmp_path: Path, code: str, tests: str, error: str) -> None:
    report = carry_out(tmp_path, code, tests, None)
    assert report["unfit"] is bool(error)
    assert error in report["error"]


@pytest.mark.usefixtures("own_modules")
def test_carry_out_in_one_process(tmp_path: Path) -> None:
    code = "class P:\n    x = 1\ndef f(): return P()"
    assert carry_out(tmp_path, code, "assert f().x == 1", None, shared=True)["error"] == ""
    report = carry_out(tmp_path, code, "def test_x():\n    assert f().x == 2", "f", shared=True)
    assert report["error"] == "assert f().x == 2 failed (tests:2)"
    assert "tests:2: in test_x" in report["detail"]
    report = carry_out(tmp_path, "raise SystemExit", "assert 1", None, shared=True)
    assert report["error"].startswith("SystemExit")
    assert "defines no g" in carry_out(tmp_path, code, "assert 1", "g", shared=True)["error"]
