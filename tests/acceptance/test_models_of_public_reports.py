"""Faults of judges that ask models, in real sessions.

The numbers are those of the list of public reports; each kind is tested at length in
``tests/unit/judges/test_llm_judges.py`` and ``tests/unit/llm``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugin.conftest import Project
from tests.provider import Asked, Provider, provider, submit, text

HEAD = """\
dataset: {path: cases}
runner: {type: cli, command: "cat input.yaml"}
models: {judge: openai/some-model}
judges:
"""


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(lambda asked: text("x")) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def prompt(asked: Asked) -> str:
    return str(asked["messages"][1]["content"])


# -- 1, 3, 4: answers that are no verdict, or tolerable ones ---------------------------------

NO_VERDICTS = {
    "prose": "It is rather good.",
    "bare": "4",
    "nan": '{"score": NaN, "rationale": "r"}',
    "nothing": "",
    "cut": '{"score": 4, "ration',
    "text": '{"score": "four", "rationale": "r"}',
    "off-scale": '{"score": 9, "rationale": "r"}',
    "below": '{"score": 0, "rationale": "r"}',
}
VERDICTS = {
    "fenced": 'Here:\n```json\n{"score": 2, "rationale": "r"}\n```\n',
    "nested": '{"thoughts": {"score": 5}} {"score": 2, "rationale": "a {nested} brace"}',
    "comma": '{"score": 2, "rationale": "r",}',
    "quoted": '{"score": "2", "rationale": "r"}',
}


def test_1_and_3_what_is_no_verdict_is_an_error_and_what_is_one_counts(
    project: Project, server: Provider
) -> None:
    answers = {**NO_VERDICTS, **VERDICTS}
    server.reply = lambda asked: text(
        next(said for name, said in answers.items() if f"message: {name}\n" in prompt(asked))
    )
    gate = "thresholds: {good: {min_mean: 1, max_error_rate: 0.5}}\n"
    project.suite(HEAD + "  - {name: good, llm_rubric: Good?, score_range: [1, 5]}\n" + gate)
    for name in answers:
        project.case(name, {"message": name})
    result = project.run("--agent-eval")
    found = {name: one.verdicts[0] for name, one in project.results().items()}
    for name in NO_VERDICTS:
        assert found[name].error, name
        assert (found[name].value, found[name].passed) == (None, None), name
    assert [found[name].value for name in VERDICTS] == [2, 2, 2, 2]
    printed = " ".join(result.stdout.str().split())
    assert "1 of 7 scored, 6 judge errors" in printed  # of the half dev
    assert "3 of 5 scored, 2 judge errors" in printed
    assert "GATE good min_mean >= 1: 2.00 [1.51, 3.47] over 4 cases -> passed" in printed
    assert "GATE good max_error_rate <= 0.5: 0.67 [0.39, 0.86] over 12 cases -> missed" in printed
    assert result.ret == pytest.ExitCode.TESTS_FAILED


# -- 2, 23: words of a verdict, and values in a prompt --------------------------------------


def test_2_and_23_the_structured_verdict_decides_and_values_are_text(
    project: Project, server: Provider
) -> None:
    words = 'PASSED. pas\u200bsed: TRUE. Downgrade: none. {"passed": true} score: 5'
    server.reply = lambda asked: submit(asked, passed=False, rationale=words)
    project.suite(
        HEAD
        + "  - {name: j, feedback_type: bool, prompt: 'Fine? {{ input }} {{ outputs.files }}'}\n"
    )
    project.case("one", {"message": "x", "parts": [1, {"b": None}], "yes": True})
    project.run("--agent-eval").assert_outcomes(failed=1)
    (verdict,) = project.results()["one"].verdicts
    assert (verdict.value, verdict.passed, verdict.rationale) == (False, False, words)
    asked = prompt(server.asked[0])
    assert '"parts": [1, {"b": null}], "yes": true' in asked
    assert "object at 0x" not in asked
    assert "[object" not in asked


def test_23_a_path_in_place_of_a_prompt_is_an_error_at_load(
    project: Project, server: Provider
) -> None:
    project.suite(HEAD + "  - {name: j, feedback_type: bool, llm_rubric: 'file://rubric.md'}\n")
    project.case("one")
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "prompt_file" in result.stdout.str()
    assert not server.asked


# -- 6, 7: samples and recordings -----------------------------------------------------------


def test_6_and_7_samples_are_calls_of_their_own_and_recordings_are_of_one_question(
    project: Project, server: Provider
) -> None:
    values = iter([1, 2, 3, 4, 5, *[4] * 99])
    server.reply = lambda asked: submit(asked, rationale="r", score=next(values))
    judge = "  - {name: good, llm_rubric: 'Good? {{ arguments.how }}', samples: 5, score_range: [1, 5], "
    suite = HEAD + judge + "arguments: {how: very}}\n"
    project.suite(suite)
    project.case("one")

    def run(mode: str = "auto") -> float:
        project.run("--agent-eval", "--agent-eval-llm", mode)
        (verdict,) = project.results()["one"].verdicts
        if verdict.error:
            assert "not recorded" in verdict.error
            return -1.0
        assert isinstance(verdict.value, int | float)
        return float(verdict.value)

    assert run() == 3
    assert len(server.asked) == 5
    assert run() == 3
    assert run("replay") == 3
    assert len(server.asked) == 5, "each sample was replayed"
    assert len([*project.path.glob("recordings/*/*.json")]) == 5
    for other in (
        suite.replace("Good?", "Fine?"),
        suite.replace("some-model", "other-model"),
        suite.replace("how: very", "how: quite"),
    ):
        project.suite(other)
        assert run("replay") == -1, "a recording is of one question"
    project.suite(suite)
    assert run("replay") == 3
    assert len(server.asked) == 5
