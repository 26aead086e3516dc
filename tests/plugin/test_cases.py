"""Broken cases: each is its own clear error, and the other cases run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import ECHO, Project


def _break_yaml(case: Path) -> None:
    (case / "annotations.yaml").write_text("tags: [a\nb: 1\n")


def _break_input(case: Path) -> None:
    (case / "input.yaml").unlink()


def _break_encoding(case: Path) -> None:
    (case / "annotations.yaml").write_bytes(b"note: caf\xe9\n")


def _break_duplicate(case: Path) -> None:
    (case / "annotations.yaml").write_text("a: 1\na: 2\n")


def _break_tags(case: Path) -> None:
    (case / "annotations.yaml").write_text("tags: [no, on, 1.0]\n")


def _break_documents(case: Path) -> None:
    (case / "annotations.yaml").write_text("a: 1\n---\nb: 2\n")


def _break_tabs(case: Path) -> None:
    (case / "annotations.yaml").write_text("a:\n\tb: 1\n")


def _break_twice(case: Path) -> None:
    (case / "input.json").write_text("{}")


def _break_list(case: Path) -> None:
    (case / "annotations.yaml").write_text("- a\n- b\n")


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        (_break_yaml, "annotations.yaml:2*"),
        (_break_input, "no input.yaml"),
        (_break_encoding, "annotations.yaml:1*UTF-8"),
        (_break_duplicate, "annotations.yaml:2*duplicate key 'a'*line 1"),
        (_break_tags, "tags*quote"),
        (_break_documents, "annotations.yaml*"),
        (_break_tabs, "annotations.yaml:2*"),
        (_break_twice, "input.yaml*input.json"),
        (_break_list, "annotations.yaml*mapping"),
    ],
)
def test_a_broken_case_is_an_error_of_its_own(
    project: Project, breakage: object, says: str
) -> None:
    project.suite()
    project.cases(3)
    assert callable(breakage)
    breakage(project.path / "cases" / "case-002")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines([f"case-002: *{says}*"])
    assert "Traceback" not in result.stdout.str()
    assert "documents.py" not in result.stdout.str()
    assert project.results()["case-002"].status == "error"


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "empty"), (b"- a\n", "mapping"), (b"a: [1\n", "input.yaml:"), (b"\xff\xfe", "UTF-8")],
)
def test_a_broken_input_is_found_when_the_case_runs(
    project: Project, content: bytes, says: str
) -> None:
    project.suite()
    project.cases(2)
    (project.path / "cases/case-001/input.yaml").write_bytes(content)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"case-001: *{says}*"])


@pytest.mark.parametrize("annotations", ["", "\ufeffcategory: a\n", "# nothing\n", "null\n"])
def test_empty_and_marked_annotations_are_fine(project: Project, annotations: str) -> None:
    project.suite()
    project.case("case-001", annotations=annotations)
    project.run("--agent-eval").assert_outcomes(passed=1)


def test_a_name_pytest_cannot_address(project: Project) -> None:
    project.suite()
    project.case("case::x")
    project.case("case-002")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*::*name*"])


def test_names_with_spaces_and_letters_of_all_kinds(project: Project) -> None:
    project.suite()
    for name in ("with space", "Größe", "案例-1", "na\u0308ive"):
        project.case(name)
    project.run("--agent-eval").assert_outcomes(passed=4)
    project.run("eval.yaml::Größe").assert_outcomes(passed=1)
    project.run("cases/案例-1").assert_outcomes(passed=1)


def test_a_nested_layout_is_explained(project: Project) -> None:
    project.suite()
    project.case("case-001")
    project.case("inner", dataset="cases/group")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["group: *no input.yaml*inner*"])


def test_hidden_directories_and_files_are_not_cases(project: Project) -> None:
    project.suite()
    project.case("case-001")
    project.write("cases/.hidden/x", "")
    project.write("cases/_drafts/x", "")
    project.write("cases/readme.md", "")
    project.run("--agent-eval").assert_outcomes(passed=1)


def test_a_symlink_out_of_a_whitelisted_directory(project: Project) -> None:
    project.suite(
        ECHO.replace("{path: cases}", "{path: cases, workspace: {files: [docs]}}")
        .replace("cp input.yaml {output_dir}/copy.yaml", "sh -c 'cp -r docs output/'")
        .replace("copy.yaml", "docs/a.md")
    )
    case = project.case("case-001")
    project.case("case-002")
    project.write("cases/case-001/docs/a.md", "a")
    project.write("cases/case-002/docs/a.md", "a")
    os.symlink("/etc/passwd", case / "docs" / "passwd")
    project.run("--agent-eval").assert_outcomes(passed=2)
    result = project.results()["case-001"]
    assert any("passwd" in note for note in result.notes)
    assert not list(project.latest.rglob("passwd"))


def test_a_case_directory_that_is_a_link_out_of_the_dataset(project: Project) -> None:
    project.suite()
    project.case("case-001")
    project.case("outside", dataset="elsewhere")
    os.symlink(project.path / "elsewhere" / "outside", project.path / "cases" / "case-002")
    project.run("--agent-eval").assert_outcomes(passed=1, errors=1)


def test_a_missing_companion_file_is_an_error_of_that_case(project: Project) -> None:
    project.suite(ECHO.replace("{path: cases}", "{path: cases, workspace: {files: [notes.md]}}"))
    project.case("case-001", notes__md="x")
    project.case("case-002")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["case-002: *notes.md*"])


def test_a_field_one_case_lacks(project: Project) -> None:
    project.suite(ECHO + 'execution: {prompt: "{message} {order}"}\n')
    project.case("case-001", {"message": "a", "order": 1})
    project.case("case-002", {"message": "b"})
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["case-002: *order*"])


def test_command_placeholders(project: Project) -> None:
    """Unset names of the contract are empty, braces of another language stay, fields are due."""
    project.suite(
        """\
        dataset: {path: cases}
        runner:
          type: cli
          command: ["sh", "-c", 'echo "${LANGUAGE}[$1][$2][$3]"', "sh", "{effort}", "{n}", "{who}"]
        judges:
          - name: words
            check: return outputs['stdout'].strip().endswith('[][][5]'), outputs['stdout']
        """
    )
    project.case("case-001", {"n": None, "who": 5})
    project.case("case-002", {"n": 1})
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["case-002: *{who}*", "*words*pass rate 1.00*"])
    assert "left as it is" not in result.stdout.str()


def test_an_agent_that_edits_the_dataset_is_caught(project: Project) -> None:
    project.suite(
        ECHO.replace(
            "cp input.yaml {output_dir}/copy.yaml",
            "sh -c 'cp input.yaml output/copy.yaml; echo x >> {config_dir}/cases/case-001/input.yaml'",
        )
    )
    project.cases(1)
    result = project.run("--agent-eval")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*case-001: *dataset was changed*"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_a_name_with_dots_is_shown_as_it_can_be_asked_for(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.suite(VARIED)
    for name in ("gpt-4.1", "x.yaml", "plain"):
        project.case(name, {"message": name})
    project.write("cases/broken.case/input.yaml", "[")
    project.write("cases/broken.case/annotations.yaml", "[")
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", "-v", "--junit-xml", "report.xml", *workers)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    ids = [f"eval.yaml::{name}[v1.0]" for name in ("broken.case", "gpt-4.1", "plain", "x.yaml")]
    words = {"PASSED", "FAILED", "ERROR"}
    shown = [set(line.split()) for line in result.outlines if words & set(line.split())]
    for nodeid in ids:
        assert any(nodeid in line and len(line) < 7 for line in shown), nodeid
    assert "::yaml" not in result.stdout.str()
    result.stdout.fnmatch_lines(["___* x.yaml[[]v1.0[]]  ___*"])
    report = (project.path / "report.xml").read_text()
    assert 'classname="eval.yaml" name="x.yaml[v1.0]"' in report
    project.run("-v", ids[1]).assert_outcomes(passed=1)


VARIED = """\
dataset: {path: cases}
runner: {type: cli, command: "echo {message}"}
judges: [{name: fine, check: "return 'x.yaml' not in outputs['stdout']"}]
variants: {v1.0: {}}
"""
