"""Each key's type and range, said in plain words."""

from __future__ import annotations

from typing import Any

import pytest

ONE_KEY = [
    # text, path, message
    ("name: 3", "name", 'must be a string, not 3; quote it: "3"'),
    ("name: yes", "name", 'must be a string, not true; quote it: "true"'),
    (
        "name: 2024-01-02",
        "name",
        'must be a string, not the date 2024-01-02; quote it: "2024-01-02"',
    ),
    ("name: ' '", "name", "must not be empty"),
    ("name: [a]", "name", "must be a string, not a list"),
    ("name: !!binary aGk=", "name", "must be a string, not binary data"),
    ("executon: {}", "executon", "unknown key; did you mean execution?"),
    ("on: 1", "True", "a key must be a string, not true; quote it"),
    ("execution: []", "execution", "must be a mapping, not a list"),
    ("execution: {timeout: 0}", "execution.timeout", "must be a number greater than 0, not 0"),
    ("execution: {timeout: true}", "execution.timeout", "must be a number, not true"),
    (
        "execution: {timeout: '3'}",
        "execution.timeout",
        "must be a number, not '3'; write it without quotes, such as 3",
    ),
    ("execution: {timeout: .inf}", "execution.timeout", "must be a finite number, not inf"),
    ("execution: {timeout: .nan}", "execution.timeout", "must be a finite number, not nan"),
    (
        "execution: {max_budget_usd: -0.5}",
        "execution.max_budget_usd",
        "must be a number of at least 0, not -0.5",
    ),
    ("execution: {trials: 1.0}", "execution.trials", "must be a whole number, not 1.0"),
    ("execution: {trials: 0}", "execution.trials", "must be a whole number of at least 1, not 0"),
    (
        "execution: {retries: -1}",
        "execution.retries",
        "must be a whole number of at least 0, not -1",
    ),
    (
        "execution: {pass: most}",
        "execution.pass",
        "must be one of all, any, majority, rate:X with 0 < X <= 1, not 'most'",
    ),
    (
        "execution: {pass: 'rate:0'}",
        "execution.pass",
        "must be one of all, any, majority, rate:X with 0 < X <= 1, not 'rate:0'",
    ),
    (
        "execution: {allow_exit_codes: [0, true]}",
        "execution.allow_exit_codes",
        "must be a list of integers, or any, not [0, True]",
    ),
    (
        "execution: {env: {A: 1}}",
        "execution.env.A",
        'must be a string, not 1; quote it: "1"',
    ),
    (
        "execution: {env: {A: null}}",
        "execution.env.A",
        'must be a string, not empty; write "" for an empty string',
    ),
    ("execution: {env: {'A=B': x}}", "execution.env.A=B", "'A=B' is no name of a variable"),
    ('execution: {env: {A: "x\\0"}}', "execution.env.A", "must not hold a NUL character"),
    ("execution: {env: {1: x}}", "execution.env[1]", "a key must be a string, not 1; quote it"),
    ("dataset: {path: 3}", "dataset.path", 'must be a string, not 3; quote it: "3"'),
    ("dataset: {path: a/../b}", "dataset.path", "must not hold .., as 'a/../b' does"),
    ("dataset: {path: 'a\\..\\b'}", "dataset.path", "must not hold .., as 'a\\\\..\\\\b' does"),
    ("dataset: {}", "dataset.path", "missing; it is required"),
    ("dataset: null", "dataset", "missing; it is required"),
    (
        "dataset: {path: c, leak: never}",
        "dataset.leak",
        "must be one of warn, error, off, not 'never'",
    ),
    (
        "dataset: {path: c, leak: on}",
        "dataset.leak",
        "must be one of warn, error, off, not true; quote it",
    ),
    (
        "dataset: {path: c, split: {holdout: 1.5}}",
        "dataset.split.holdout",
        "must be a number of at most 1, not 1.5",
    ),
    (
        "dataset: {path: c, split: {by: pair}}",
        "dataset.split.by",
        "must be name or annotations.<key>, such as annotations.pair, not 'pair'",
    ),
    (
        "dataset: {path: c, cases: [{include: a, exclude: b}]}",
        "dataset.cases[0]",
        "must be exactly one of {include: glob} and {exclude: glob}",
    ),
    (
        "dataset: {path: c, cases: [{}]}",
        "dataset.cases[0]",
        "must be exactly one of {include: glob} and {exclude: glob}",
    ),
    ("dataset: {path: c, cases: [a]}", "dataset.cases[0]", "must be a mapping, not 'a'"),
    (
        "dataset: {path: c, workspace: {files: a}}",
        "dataset.workspace.files",
        "must be a list, not 'a'",
    ),
    (
        "dataset: {path: c, workspace: {files: ['']}}",
        "dataset.workspace.files[0]",
        "must not be empty",
    ),
    (
        "dataset: {path: c, answers: [1]}",
        "dataset.answers[0]",
        'must be a string, not 1; quote it: "1"',
    ),
    ("traces: {events: 1}", "traces.events", "must be true or false, not 1"),
    (
        "traces: {events: 'no'}",
        "traces.events",
        "must be true or false, not 'no'; write it without quotes, such as true",
    ),
    ("models: {judge: 3}", "models.judge", 'must be a string, not 3; quote it: "3"'),
    ("mlflow: {tag: x}", "mlflow.tag", "unknown key; did you mean tags?"),
    (
        "traces: {qwertz: x}",
        "traces.qwertz",
        "unknown key; keys here: events, metrics, stderr, stdout",
    ),
    ("hooks: {before: []}", "hooks.before", "unknown key; did you mean before_all?"),
    ("hooks: {before_all: [{}]}", "hooks.before_all[0].command", "missing; it is required"),
    (
        "hooks: {before_all: [{command: x, on_failure: stop}]}",
        "hooks.before_all[0].on_failure",
        "must be one of fail, continue, not 'stop'",
    ),
    ("judges: {}", "judges", "must be a list, not a mapping"),
    ("judges: [a]", "judges[0]", "must be a mapping, not 'a'"),
    ("thresholds: []", "thresholds", "must be a mapping, not a list"),
    ("variants: {a: [1]}", "variants.a", "must be a mapping, not a list"),
    ("generation: {strategy: random}", "generation.strategy",
     "must be one of skill, synthetic, from-traces, not 'random'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "path", "message"), ONE_KEY)
def test_one_wrong_key(problems: Any, text: str, path: str, message: str) -> None:
    assert problems(text) == {path: message}


def test_long_values_are_cut(problems: Any) -> None:
    (message,) = problems(f"execution: {{mode: {'x' * 500}}}").values()
    assert len(message) < 120


def test_a_number_of_thousands_of_digits(problems: Any) -> None:
    assert "hex" not in problems(f"execution: {{timeout: 0x{'f' * 4000}}}")["execution.timeout"]


def test_null_equals_absent_and_absent_equals_defaults(load: Any) -> None:
    absent = load("x-note: 1")
    nulls = load(
        """
        dataset: {path: cases, schema: null, split: null, workspace: {files: null}, cases: null}
        name: null
        skill: null
        execution: {timeout: null, mode: null, steps: null, env: null, parallelism: null}
        runner: null
        models: null
        permissions: {allow: null}
        inputs: null
        outputs: null
        traces: null
        judges: null
        thresholds: {a: null}
        reward: null
        hooks: {before_all: null}
        mlflow: null
        generation: null
        variants: null
        matrix: null
        """
    )
    assert nulls.config == absent.config
    assert [str(item.message) for item in nulls.warnings] == [
        str(item.message) for item in absent.warnings
    ]


def test_defaults(load: Any) -> None:
    config = load("").config
    assert config.execution.timeout == 3600
    assert config.execution.max_budget_usd == 100
    assert 1 <= config.execution.parallelism <= 8
    assert config.execution.allow_exit_codes == (0,)
    assert config.execution.pass_ == "all"
    assert config.runner.type == "claude-code"
    assert config.dataset.leak == "warn"
    assert config.dataset.split.holdout == 0.5
    assert config.dataset.split.default == "all"
    assert config.dataset.answers[0] == "expected_output"
    assert config.generation.strategy == "skill"
    assert all(config.traces.model_dump().values())
    assert config.reward is None
    assert config.mlflow is None


def test_zero_is_zero(load: Any) -> None:
    assert load("execution: {max_budget_usd: 0}").config.execution.max_budget_usd == 0


def test_an_int_is_fine_where_a_float_is_meant(load: Any) -> None:
    assert load("execution: {timeout: 5}").config.execution.timeout == 5.0


@pytest.mark.parametrize("text", ["rate:0.5", "rate:1", "rate:.25", "any", "majority"])
def test_pass(load: Any, text: str) -> None:
    assert load(f"execution: {{pass: '{text}'}}").config.execution.pass_ == text


def test_unquoted_off_means_off(load: Any) -> None:
    assert load("dataset: {path: c, leak: off}").config.dataset.leak == "off"


def test_exit_codes(load: Any) -> None:
    assert load("execution: {allow_exit_codes: any}").config.execution.allow_exit_codes == "any"
    codes = load("execution: {allow_exit_codes: [0, 2]}").config.execution.allow_exit_codes
    assert codes == (0, 2)


def test_x_keys_are_free_anywhere(load: Any) -> None:
    suite = load(
        """
        x-common: &common {timeout: 5}
        dataset: {path: cases, x-a: 1, split: {x-b: [1]}}
        execution: {<<: *common, x-c: 1}
        judges:
          - {name: a, check: return True, x-d: null}
        thresholds: {x-e: 3, a: {min_mean: 1, x-f: 1}}
        hooks: {x-g: 1}
        variants: {x-h: 1}
        """
    )
    assert suite.config.execution.timeout == 5
    assert set(suite.config.thresholds) == {"a"}
    assert suite.variants == {}


def test_free_form_mappings_keep_their_keys(load: Any) -> None:
    suite = load(
        """
        runner: {type: cli, command: x, settings: {x-a: 1, none: null}, env: {x-b: c}}
        judges: [{name: a, check: return 1, arguments: {x-c: null}}]
        """
    )
    assert suite.config.runner.settings == {"x-a": 1, "none": None}
    assert suite.config.runner.env == {"x-b": "c"}
    assert suite.config.judges[0].arguments == {"x-c": None}


def test_models_are_frozen(load: Any) -> None:
    config = load("").config
    with pytest.raises(ValueError, match="frozen"):
        config.execution.timeout = 1


def test_several_blocks_are_all_reported(problems: Any) -> None:
    found = problems(
        """
        dataset: {path: ..}
        execution: {timeout: x}
        runner: {type: 3}
        judges: [{name: a, if: 'nothing_known', check: 'return ('}, 3]
        thresholds: {b: {min_mean: 1}}
        outputs: [{path: a, tool: b, schema: 1}]
        """
    )
    assert set(found) == {
        "dataset.path",
        "execution.timeout",
        "runner.type",
        "judges[0].if",
        "judges[0].check",
        "judges[1]",
        "thresholds.b",
        "outputs[0]",
        "outputs[0].schema",
    }
