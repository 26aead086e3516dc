"""From eval.yaml to items: what is collected, what is left alone, what runs."""

from __future__ import annotations

import pytest

from .conftest import ECHO, Project


def test_each_case_is_an_item_in_natural_order(project: Project) -> None:
    project.suite()
    for name in ("case-10", "case-2", "case-1"):
        project.case(name)
    result = project.run("--collect-only", "-q")
    assert result.ret == 0
    assert result.outlines[:3] == [
        "eval.yaml::case-1",
        "eval.yaml::case-2",
        "eval.yaml::case-10",
    ]


def test_cases_are_skipped_unless_asked_for(project: Project) -> None:
    project.suite()
    project.cases(2)
    result = project.run("-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED [[]2[]] eval.yaml*--agent-eval*"])
    assert not project.runs


@pytest.mark.parametrize(
    "arguments",
    [
        ["--agent-eval"],
        ["eval.yaml"],
        ["eval.yaml::case-001"],
        ["cases/case-001"],
        ["cases/case-001/input.yaml"],
    ],
)
def test_asking_runs_them(project: Project, arguments: list[str]) -> None:
    project.suite()
    project.cases(1)
    project.run(*arguments).assert_outcomes(passed=1)
    assert project.results()["case-001"].status == "passed"


def test_ini_asks(project: Project) -> None:
    project.suite()
    project.cases(1)
    project.pytester.makeini("[pytest]\nagent_eval = true\n")
    project.run().assert_outcomes(passed=1)


def test_no_agent_eval_collects_nothing(project: Project) -> None:
    project.suite()
    project.cases(1)
    assert project.run("--no-agent-eval").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_case_directory_selects_that_case_only(project: Project) -> None:
    project.suite()
    project.cases(3)
    result = project.run("cases/case-002", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["eval.yaml::case-002 PASSED*"])


def test_a_case_directory_from_a_subdirectory_and_by_absolute_path(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.suite(name="evals/eval.yaml")
    project.case("case-001", dataset="evals/cases")
    project.case("case-002", dataset="evals/cases")
    project.run(str(project.path / "evals/cases/case-002")).assert_outcomes(passed=1)
    monkeypatch.chdir(project.path / "evals" / "cases")
    project.run("case-002").assert_outcomes(passed=1)


def test_the_dataset_directory_names_the_suite(project: Project) -> None:
    project.suite()
    project.cases(2)
    project.run("cases").assert_outcomes(passed=2)


def test_code_in_a_case_is_data(project: Project) -> None:
    project.suite()
    case = project.case("case-001")
    (case / "test_data.py").write_text("def test_never():\n    raise SystemExit(9)\n")
    (case / "conftest.py").write_text("raise SystemExit(9)\n")
    project.run("--agent-eval").assert_outcomes(passed=1)
    project.subprocess("cases/case-001").assert_outcomes(passed=1)
    project.subprocess("cases/case-001/test_data.py").assert_outcomes(passed=1)


def test_cases_beside_the_suite(project: Project) -> None:
    project.suite(ECHO.replace("path: cases", "path: ."), name="evals/eval.yaml")
    case = project.case("case-001", dataset="evals")
    (case / "test_data.py").write_text("def test_never():\n    raise SystemExit(9)\n")
    project.run("--agent-eval").assert_outcomes(passed=1)
    project.run("evals/case-001").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "content",
    [
        "model: yolo\ndataset: coco128.yaml\nepochs: 3\n",
        "- a\n- b\n",
        "",
        b"\x00\x01\xff\xfe binary \x80",
        "just text",
        "dataset: {path: x}\nlr: 1\n",
        "a: [1, 2\n",
    ],
)
def test_eval_yaml_files_of_others_are_left_alone(project: Project, content: str | bytes) -> None:
    project.write("eval.yaml", content)
    project.write("sub/other.eval.yaml", content)
    project.write("test_ordinary.py", "def test_it():\n    pass\n")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1)
    assert "agent-eval" not in result.stdout.str().split("collected")[1]


def test_a_foreign_file_that_was_named_is_explained(project: Project) -> None:
    project.write("eval.yaml", "model: yolo\ndataset: coco128.yaml\n")
    result = project.run("eval.yaml")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*eval.yaml: not a suite*judges*"])


def test_broken_yaml_that_was_meant_as_a_suite_is_shown(project: Project) -> None:
    project.write("eval.yaml", "dataset: {path: cases}\nrunner: {type: cli\njudges: []\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*eval.yaml:*not valid YAML*"])
    assert "Traceback" not in result.stdout.str()


def test_all_problems_of_a_suite_at_once_without_a_traceback(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {parallelism: 0, mode: cases}
        judges:
          - {name: a, feedback_typ: bool, check: 'return True'}
        """
    )
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines_random(
        [
            "*eval.yaml:2: execution.parallelism:*",
            "*eval.yaml:2: execution.mode:*",
            "*eval.yaml:4: judges[[]0[]].feedback_typ: *feedback_type*",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert ".py:" not in result.stdout.str()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cases: none", "cases"),
        ("", "cases"),
    ],
)
def test_no_cases_is_never_green(project: Project, text: str, says: str) -> None:
    project.suite()
    if text:
        project.write("cases/readme.txt", text)
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*{says}*"])
    assert "Traceback" not in result.stdout.str()


def test_what_is_not_supported_yet_is_one_clear_error(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {prompt: "{message}"}
        runner: {type: claude-code, sandbox: auto}
        judges:
          - {name: polite, check: return True}
        """
    )
    project.cases(1)
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    assert text.count("not supported yet") == 1
    assert "Traceback" not in text
    project.run().assert_outcomes(skipped=1)


def test_a_placeholder_no_case_provides_is_found_at_collection(project: Project) -> None:
    project.suite(ECHO + 'execution: {prompt: "{message} {nowhere}"}\n')
    project.cases(2)
    result = project.run("--agent-eval", "--collect-only")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*eval.yaml:*execution.prompt: {nowhere}: no case's input*"])


def test_module_scoped_and_autouse_fixtures_work(project: Project) -> None:
    project.suite()
    project.cases(2)
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(autouse=True, scope="module")
        def once():
            print("MODULE FIXTURE")
            yield

        @pytest.fixture(autouse=True)
        def each(tmp_path):
            yield
        """,
    )
    result = project.run("--agent-eval", "-s")
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("MODULE FIXTURE") == 1


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only", "--collect-only"])
def test_nothing_is_started_when_only_looking(project: Project, option: str) -> None:
    project.suite(ECHO.replace("cp input.yaml {output_dir}/copy.yaml", "touch {config_dir}/ran"))
    project.cases(1)
    assert project.run("--agent-eval", option).ret == 0
    assert not (project.path / "ran").exists()
    assert not project.runs


def test_two_suites_with_equal_case_names(project: Project) -> None:
    project.suite(name="a/eval.yaml")
    project.suite(name="b/eval.yaml")
    project.case("case-001", dataset="a/cases")
    project.case("case-001", dataset="b/cases")
    project.run("--agent-eval").assert_outcomes(passed=2)
    records = {path.parent for path in (project.latest / "cases").rglob("record.json")}
    assert len(records) == 2
    assert set(project.summary()["suites"]) == {"a/eval.yaml", "b/eval.yaml"}
