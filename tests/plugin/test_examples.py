"""Sessions whose judge is shown what people said of other outputs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.provider import Answer, Asked, Provider, provider, submit

from .conftest import Project

SUITE = """\
name: greetings
dataset: {path: cases, split: {holdout: 0.5}}
runner: {type: cli, command: [cat, input.yaml]}
models: {judge: openai/some-model}
judges:
  - name: kind
    llm_rubric: Is it kind?
    feedback_type: bool
    labels: human/kind.yaml
    examples: {source: human/kind.yaml, mix: {true: 1, false: 1}}
"""


def kind(asked: Asked) -> Answer:
    content = str(asked["messages"][1]["content"])
    mine = content.rsplit("Is it kind?", 1)[1]
    return submit(asked, passed="odd" not in mine, rationale="looked")


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    project.suite(SUITE)
    for number in range(12):
        word = "odd" if number % 2 else "even"
        project.case(f"case-{number:02d}", {"message": f"{word} words {number}"})
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(kind) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def scored(project: Project, output: str = "scored") -> None:
    entries = [
        f"case-{n:02d}: {{value: {str(n % 2 == 0).lower()}, output: '{output} {n}'}}"
        for n in range(12)
    ]
    project.write("human/kind.yaml", "\n".join(entries))


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["here", "xdist"])
def test_a_judge_is_shown_examples(project: Project, server: Provider, workers: list[str]) -> None:
    scored(project)
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", "--agent-eval-split", "all", *workers)
    result.assert_outcomes(passed=6, failed=6)
    halves = {name: stored.split for name, stored in project.results().items()}
    assert set(halves.values()) == {"dev", "holdout"}
    prompts = [str(asked["messages"][1]["content"]) for asked in server.asked]
    assert len(prompts) == 12
    used = set()
    for prompt in prompts:
        before, after = prompt.rsplit("Is it kind?", 1)
        shown = {name for name in halves if f"scored {int(name[-2:])}\n" in before}
        assert len(shown) == 2
        assert all(halves[name] == "dev" for name in shown)
        (judged,) = [name for name in halves if f"words {int(name[-2:])}\n" in after]
        assert judged not in shown
        used |= shown
    said = " ".join(result.stdout.str().split())
    assert f"left out: {len(used)} shown as examples" in said
    held = sum(half == "holdout" for half in halves.values())
    assert f"human/kind.yaml: {held} examples are of holdout cases and are never shown" in said
    calibration = project.summary()["calibration"]["kind"]
    assert (calibration["taught_cases"], calibration["compared_cases"]) == (
        len(used),
        12 - len(used),
    )


def test_an_edited_example_has_the_judge_asked_again(project: Project, server: Provider) -> None:
    scored(project)
    project.run("--agent-eval")
    asked = len(server.asked)
    assert "kept" in project.run("--agent-eval", "--agent-eval-resume").stdout.str()
    assert len(server.asked) == asked
    scored(project, "rescored")
    resumed = project.run("--agent-eval", "--agent-eval-resume")
    assert "judged again" in resumed.stdout.str()
    assert len(server.asked) == 2 * asked


def test_an_example_of_no_case_is_a_mistake(project: Project, server: Provider) -> None:
    scored(project)
    with open(project.path / "human/kind.yaml", "a") as stream:
        stream.write("\ncase-1: {value: true, output: x}\n")
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    said = result.stdout.str()
    assert said.count("human/kind.yaml:13: case-1: the dataset has no case of this name") == 1
    assert server.asked == []
