from __future__ import annotations

from typing import Any

import pytest


def test_variants_are_merged_over_the_suite(load: Any) -> None:
    suite = load(
        """
        dataset: {path: cases}
        execution: {timeout: 5, env: {A: a, B: b}}
        runner: {type: cli, command: [tool, "{flag}"]}
        models: {skill: small, judge: j}
        judges: [{name: a, check: return 1}]
        variants:
          fast:
            models: {skill: tiny}
            execution: {env: {A: x}, timeout: null}
            values: {flag: true, n: 3}
          other:
            judges: [{name: b, check: return 2}]
          none: null
        """
    )
    fast, other = suite.variants["fast"], suite.variants["other"]
    assert list(suite.variants) == ["fast", "other"]
    assert (fast.models.skill, fast.models.judge) == ("tiny", "j")
    assert fast.execution.env == {"A": "x", "B": "b"}
    assert fast.execution.timeout == 3600
    assert [judge.name for judge in other.judges] == ["b"]
    assert suite.config.models.skill == "small"
    assert suite.placeholders == {"fast": {"flag": "true", "n": "3"}, "other": {}}


def test_every_variant_must_validate(problems: Any) -> None:
    found = problems(
        """
        dataset: {path: cases}
        execution: {timeout: 5}
        judges: [{name: a, check: return 1}]
        variants:
          one: {execution: {timeout: 0}}
          two: {runner: {type: cli}, exection: {}}
          three: {thresholds: {b: {min_mean: 1}}}
        """
    )
    assert found == {
        "variants.one.execution.timeout": "must be a number greater than 0, not 0",
        "variants.two.runner.command": "missing; type cli needs the command to run",
        "variants.two.exection": "unknown key; did you mean execution?",
        "variants.three.thresholds.b": "no judge is named 'b'; judges: a",
    }


def test_a_problem_of_the_suite_is_not_repeated_for_each_variant(problems: Any) -> None:
    found = problems("judges: [{name: a}]\nvariants: {one: {}, two: {}}")
    assert list(found) == ["judges[0]"]


@pytest.mark.parametrize(
    ("variant", "path", "word"),
    [
        ("{'a[1]': {}}", "variants.a[1]", "::"),
        ("{'a::b': {}}", "variants.a::b", "::"),
        ("{' a': {}}", "variants. a", "blank"),
        ('{"a\\tb": {}}', "variants.a\tb", "control"),
        ("{a: {values: [1]}}", "variants.a.values", "mapping"),
        ("{a: {values: {b: [1]}}}", "variants.a.values.b", "string or a number"),
        ("{a: {values: {1: b}}}", "variants.a.values[1]", "quote"),
        ("{a: {matrix: {factors: {}}}}", "variants.a.matrix", "cannot change"),
        ("{a: {name: b}}", "variants.a.name", "cannot change"),
    ],
)
def test_wrong_variants(problems: Any, variant: str, path: str, word: str) -> None:
    found = problems(f"variants: {variant}")
    assert list(found) == [path]
    assert word in found[path]


def test_a_matrix_is_read_as_variants(load: Any) -> None:
    suite = load(
        """
        matrix:
          factors: {model: [m/1, m/2], context: [none, 3], x-note: 1}
          replications: 2
        """
    )
    assert list(suite.variants) == ["m/1-none", "m/1-3", "m/2-none", "m/2-3"]
    config = suite.variants["m/2-none"]
    assert config.models.skill == "m/2"
    assert config.execution.trials == 2
    assert suite.placeholders["m/2-none"] == {"context": "none"}


def test_a_matrix_without_replications_keeps_the_trials(load: Any) -> None:
    suite = load("execution: {trials: 4, skill: s}\nmatrix: {factors: {effort: [low]}}")
    assert suite.variants["low"].execution.trials == 4


def test_a_matrix_beside_variants_is_ignored(warnings_of: Any, load: Any) -> None:
    text = "execution: {skill: s}\nvariants: {a: {}}\nmatrix: {factors: {b: [c]}}"
    assert list(warnings_of(text)) == ["matrix"]
    assert list(load(text).variants) == ["a"]


@pytest.mark.parametrize(
    ("matrix", "path", "word"),
    [
        ("{}", "matrix.factors", "missing"),
        ("{factors: {a: []}}", "matrix.factors.a", "at least one"),
        ("{factors: {a: b}}", "matrix.factors.a", "list"),
        ("{factors: {a: [[1]]}}", "matrix.factors.a[0]", "string or a number"),
        ("{factors: {a: [x, x]}}", "matrix.factors", "two combinations"),
        ("{factors: {a: ['x[1]']}}", "matrix.factors", "variant"),
        ("{factors: {a: [b]}, replications: 0}", "matrix.replications", "at least 1"),
        (
            f"{{factors: {{{', '.join(f'f{n}: [1, 2]' for n in range(12))}}}}}",
            "matrix.factors",
            "more than 1000",
        ),
    ],
)
def test_wrong_matrices(problems: Any, matrix: str, path: str, word: str) -> None:
    found = problems(f"matrix: {matrix}")
    assert list(found) == [path]
    assert word in found[path]
