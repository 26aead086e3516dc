"""Selecting cases: markers, the plugin's options, and pytest's own."""

from __future__ import annotations

import pytest

from pytest_agent_eval.cases import Split

from .conftest import ECHO, Project


def _halves(names: list[str]) -> dict[str, list[str]]:
    split = Split()
    halves: dict[str, list[str]] = {"dev": [], "holdout": []}
    for name in names:
        halves[split.half(name)].append(name)
    return halves


def _collected(result: pytest.RunResult) -> list[str]:
    return [line.split("::", 1)[1] for line in result.outlines if line.startswith("eval.yaml::")]


@pytest.fixture
def tagged(project: Project) -> Project:
    project.suite()
    project.case(
        "case-001", annotations={"tags": ["dedup", "high-overlap"], "category": "navigation"}
    )
    project.case("case-002", annotations={"tags": {"length": "short", "channel": "email"}})
    project.case("case-003", annotations={"tags": {"length": "long"}, "category": "authoring"})
    project.case("case-004")
    return project


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("tag(length='short')", ["case-002"]),
        ("tag(length='short', channel='email')", ["case-002"]),
        ("tag(dedup='yes')", ["case-001"]),
        ("dedup and not high-overlap", []),
        ("dedup and high-overlap", ["case-001"]),
        ("category(name='navigation')", ["case-001"]),
        ("judge(name='copied')", ["case-001", "case-002", "case-003", "case-004"]),
        ("judge(name='nobody')", []),
    ],
)
def test_marker_expressions(tagged: Project, expression: str, names: list[str]) -> None:
    result = tagged.run("--agent-eval", "--collect-only", "-q", "-m", expression)
    assert _collected(result) == names


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--agent-eval-tag", "length"], ["case-002", "case-003"]),
        (["--agent-eval-tag", "length=long"], ["case-003"]),
        (["--agent-eval-tag", "length", "--agent-eval-tag", "channel=email"], ["case-002"]),
        (["--agent-eval-tag", "dedup"], ["case-001"]),
        (["--agent-eval-if", "annotations.get('category') == 'authoring'"], ["case-003"]),
        (["--agent-eval-if", "input['message'] == 'case-004'"], ["case-004"]),
        (["-k", "case-003 or case-004"], ["case-003", "case-004"]),
        (["--deselect", "eval.yaml::case-001"], ["case-002", "case-003", "case-004"]),
    ],
)
def test_options_select(tagged: Project, options: list[str], names: list[str]) -> None:
    result = tagged.run("--agent-eval", "--collect-only", "-q", *options)
    assert result.ret == 0
    assert _collected(result) == names


def test_split_option_and_marker_agree(project: Project) -> None:
    project.suite()
    project.cases(12)
    halves = _halves([f"case-{number:03d}" for number in range(1, 13)])
    assert all(halves.values())
    for half, names in halves.items():
        by_option = project.run("--agent-eval", "--collect-only", "-q", "--agent-eval-split", half)
        by_marker = project.run("--agent-eval", "--collect-only", "-q", "-m", half)
        assert _collected(by_option) == _collected(by_marker) == names


def test_default_split_applies_unless_something_is_asked(project: Project) -> None:
    project.suite(ECHO.replace("{path: cases}", "{path: cases, split: {default: dev}}"))
    project.cases(12)
    halves = _halves([f"case-{number:03d}" for number in range(1, 13)])
    first = halves["holdout"][0]
    look = ("--agent-eval", "--collect-only", "-q")
    assert _collected(project.run(*look)) == halves["dev"]
    assert len(_collected(project.run(*look, "--agent-eval-split", "all"))) == 12
    assert _collected(project.run(*look, "-m", "holdout")) == halves["holdout"]
    assert _collected(project.run(*look, f"eval.yaml::{first}")) == [first]
    assert _collected(project.run(*look, f"cases/{first}")) == [first]


def test_limit_takes_the_first_of_each_half(project: Project) -> None:
    project.suite()
    project.cases(12)
    halves = _halves([f"case-{number:03d}" for number in range(1, 13)])
    result = project.run("--agent-eval", "--collect-only", "-q", "--agent-eval-limit", "2")
    assert sorted(_collected(result)) == sorted(halves["dev"][:2] + halves["holdout"][:2])


def test_deselected_cases_are_counted(project: Project) -> None:
    project.suite()
    project.cases(3)
    result = project.run("--agent-eval", "--agent-eval-if", "name == 'case-002'")
    result.assert_outcomes(passed=1, deselected=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--agent-eval-tag", "nowhere"], "--agent-eval-tag*nowhere"),
        (["--agent-eval-if", "name == 'x'"], "--agent-eval-if"),
    ],
)
def test_a_selection_of_nothing_is_a_usage_error(
    tagged: Project, options: list[str], says: str
) -> None:
    result = tagged.run("--agent-eval", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*no case is left*{says}*"])


@pytest.mark.parametrize(
    "options",
    [
        ["--agent-eval-if", "nme == 'x'"],
        ["--agent-eval-if", "open('x')"],
        ["--agent-eval-tag", "=x"],
        ["--agent-eval-limit", "0"],
        ["--agent-eval-split", "test"],
        ["--agent-eval-parallelism", "many"],
    ],
)
def test_options_that_cannot_be_understood(tagged: Project, options: list[str]) -> None:
    result = tagged.subprocess("--agent-eval", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    "tag",
    [
        "skip",
        "xfail",
        "parametrize",
        "high-overlap",
        "2fast",
        "and",
        "\U0001f600",
        "a b",
        "_x",
        "self",
        "usefixtures",
    ],
)
def test_tags_with_names_that_mean_something_to_pytest(project: Project, tag: str) -> None:
    project.suite()
    project.case("case-001", annotations={"tags": [tag]})
    project.case("case-002")
    project.run("--agent-eval", "--strict-markers").assert_outcomes(passed=2)
    result = project.run("--agent-eval", "--agent-eval-tag", tag, "--collect-only", "-q")
    assert _collected(result) == ["case-001"]


def test_a_case_for_which_the_condition_raises_is_an_error(tagged: Project) -> None:
    result = tagged.run("--agent-eval", "--agent-eval-if", "annotations['category'] != 'x'")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["case-002: *KeyError: 'category'*"])


def test_markers_are_documented(project: Project) -> None:
    result = project.run("--markers")
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.dev:*",
            "@pytest.mark.holdout:*",
            "@pytest.mark.tag(*",
            "@pytest.mark.judge(*",
        ]
    )


def test_a_judge_condition_decides_the_judge_marker(project: Project) -> None:
    project.suite(
        ECHO + "  - {name: nav, if: \"annotations.get('category') == 'nav'\", check: return True}\n"
    )
    project.case("case-001", annotations={"category": "nav"})
    project.case("case-002")
    result = project.run("--agent-eval", "--collect-only", "-q", "-m", "judge(name='nav')")
    assert _collected(result) == ["case-001"]


def test_a_condition_true_for_every_case_is_noted_once(project: Project) -> None:
    project.suite(ECHO + '  - {name: always, if: "annotations == {}", check: return True}\n')
    project.cases(3)
    result = project.run("--agent-eval")
    assert result.stdout.str().count("judge always: its condition is true for every case") == 1


def test_dataset_filters_shape_the_dataset(project: Project) -> None:
    project.suite(
        ECHO.replace(
            "{path: cases}",
            "{path: cases, cases: [{exclude: 'case-00[1-2]'}], if: \"name != 'case-004'\"}",
        )
    )
    project.cases(5)
    result = project.run("--agent-eval", "--collect-only", "-q")
    assert _collected(result) == ["case-003", "case-005"]


def test_groups_share_a_half(project: Project) -> None:
    project.suite(ECHO.replace("{path: cases}", "{path: cases, split: {by: annotations.pair}}"))
    for number in range(20):
        project.case(f"case-{number:03d}", annotations={"pair": f"pair-{number // 2}"})
    dev = _collected(project.run("--agent-eval", "--collect-only", "-q", "-m", "dev"))
    pairs = {int(name[-3:]) // 2 for name in dev}
    assert len(dev) == 2 * len(pairs)
    assert 0 < len(dev) < 20
