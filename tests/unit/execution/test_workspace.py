from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import CaseError, RunnerError
from pytest_agent_eval.execution.workspace import (
    Contents,
    Workspace,
    create_workspace,
    is_answer_key,
    workspace_name,
)


def create(
    tmp_path: Path, *files: str, outputs: tuple[str, ...] = (), **contents: object
) -> Workspace:
    return create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(tmp_path / "case"),
        input_name="input.yaml",
        contents=Contents(files=files, outputs=outputs, **contents),  # type: ignore[arg-type]
    )


def listing(workspace: Workspace) -> set[str]:
    root = Path(workspace.directory)
    return {
        str(path.relative_to(root)) + ("/" if path.is_dir() else "") for path in root.rglob("*")
    }


def test_the_input_and_an_output_directory_are_always_there(case: Path, tmp_path: Path) -> None:
    workspace = create(tmp_path)
    assert listing(workspace) == {"input.yaml", "output/"}
    assert workspace.notes == ()
    assert set(workspace.manifest.files) == {"input.yaml"}


def test_what_is_listed_is_copied_and_nothing_else(case: Path, tmp_path: Path) -> None:
    (case / "data" / "empty").mkdir()
    (case / "data" / "run.sh").write_text("#!/bin/sh\n")
    (case / "data" / "run.sh").chmod(0o755)
    (case / "notes.md").chmod(0o444)
    workspace = create(tmp_path, "./notes.md", "data/", "input.yaml", "data/a.csv")
    assert listing(workspace) == {
        "input.yaml",
        "notes.md",
        "output/",
        "data/",
        "data/a.csv",
        "data/run.sh",
        "data/deep/",
        "data/deep/annotations.yaml",
    }
    root = Path(workspace.directory)
    assert (root / "data/a.csv").read_text() == "1,2\n"
    assert stat.S_IMODE((root / "data/run.sh").stat().st_mode) & 0o100
    assert stat.S_IMODE((root / "notes.md").stat().st_mode) & 0o200
    assert not os.path.samefile(root / "notes.md", case / "notes.md")


def test_output_paths_are_made(case: Path, tmp_path: Path) -> None:
    workspace = create(tmp_path, outputs=("reports/daily", "deep/result.json", "answer.txt"))
    assert listing(workspace) == {
        "input.yaml",
        "output/",
        "reports/",
        "reports/daily/",
        "deep/",
    }


@pytest.mark.parametrize(
    "name", ["annotations.yaml", "Answers.YML", "ANNOTATIONS.json", "./answers.txt"]
)
def test_the_answer_key_is_refused(case: Path, tmp_path: Path, name: str) -> None:
    (case / name).write_text("x: 1\n")
    with pytest.raises(CaseError, match="hands the agent the answer key"):
        create(tmp_path, name)


@pytest.mark.parametrize("entry", [".", "..", "../case", "data/..", "/etc/passwd", "data/../.."])
def test_what_is_not_inside_the_case_is_refused(case: Path, tmp_path: Path, entry: str) -> None:
    with pytest.raises(CaseError, match="not inside the case"):
        create(tmp_path, entry)


def test_a_missing_entry_is_an_error_that_tells_what_there_is(case: Path, tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        create(tmp_path, "nots.md")
    message = "workspace.files lists 'nots.md', which this case does not have; it has "
    assert caught.value.message == message + "data, gold.txt, input.yaml, notes.md"


def test_links_are_skipped_with_a_note(case: Path, tmp_path: Path) -> None:
    (case / "data" / "passwd").symlink_to("/etc/passwd")
    (case / "data" / "etc").symlink_to("/etc")
    (case / "data" / "key").symlink_to("../annotations.yaml")
    (case / "linked").symlink_to("data")
    (case / "here").symlink_to(".")
    workspace = create(tmp_path, "data", "linked", "here/annotations.yaml", "linked/a.csv")
    assert listing(workspace) == {
        "input.yaml",
        "output/",
        "data/",
        "data/a.csv",
        "data/deep/",
        "data/deep/annotations.yaml",
    }
    assert sorted(workspace.notes) == [
        "not copied into the workspace: data/etc is a symbolic link",
        "not copied into the workspace: data/key is a symbolic link",
        "not copied into the workspace: data/passwd is a symbolic link",
        "not copied into the workspace: here is a symbolic link",
        "not copied into the workspace: linked is a symbolic link",
    ]


def test_special_files_are_skipped_with_a_note(case: Path, tmp_path: Path) -> None:
    os.mkfifo(case / "data" / "pipe")
    workspace = create(tmp_path, "data")
    assert workspace.notes == ("not copied into the workspace: data/pipe is no regular file",)


def test_the_answer_key_by_another_name_is_skipped(case: Path, tmp_path: Path) -> None:
    os.link(case / "annotations.yaml", case / "data" / "hints.yaml")
    os.link(case / "notes.md", case / "data" / "notes-again.md")
    workspace = create(tmp_path, "data")
    assert "data/hints.yaml" not in listing(workspace)
    assert "data/notes-again.md" in listing(workspace)
    assert workspace.notes == (
        "not copied into the workspace: data/hints.yaml is the answer key by another name",
    )


def test_an_input_that_is_a_link_inside_the_case_is_copied(case: Path, tmp_path: Path) -> None:
    (case / "input.yaml").rename(case / "data" / "real.yaml")
    (case / "input.yaml").symlink_to("data/real.yaml")
    workspace = create(tmp_path)
    copy = Path(workspace.directory, "input.yaml")
    assert copy.read_text() == "prompt: What is 6 x 7?\n"
    assert not copy.is_symlink()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/etc/passwd", "leaves the case's directory"),
        ("../case2/input.yaml", "leaves the case's directory"),
        ("annotations.yaml", "a link to the answer key"),
        ("nowhere.yaml", "no input.yaml"),
    ],
)
def test_an_input_that_is_another_link_is_refused(
    case: Path, tmp_path: Path, target: str, expected: str
) -> None:
    (case / "input.yaml").unlink()
    (case / "input.yaml").symlink_to(target)
    with pytest.raises(CaseError, match=expected):
        create(tmp_path)


def test_a_missing_input_is_an_error(case: Path, tmp_path: Path) -> None:
    (case / "input.yaml").unlink()
    with pytest.raises(CaseError, match=r"no input\.yaml"):
        create(tmp_path)


def test_an_input_that_is_a_directory_is_an_error(case: Path, tmp_path: Path) -> None:
    (case / "input.yaml").unlink()
    (case / "input.yaml").mkdir()
    with pytest.raises(CaseError, match="cannot be read"):
        create(tmp_path)


def test_project_files_are_copied_but_never_the_dataset(case: Path, tmp_path: Path) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    (evals / "cases").mkdir()
    case.rename(evals / "cases" / "one")
    (evals / "tools").mkdir()
    (evals / "tools" / "calc.py").write_text("print(1)\n")
    (evals / "tools" / "link").symlink_to("/etc/passwd")
    (evals / "README.md").write_text("read me\n")
    (evals / "tool_handlers.yaml").write_text("case_overrides: {a: b}\n")
    workspace = create_workspace(
        str(tmp_path / "ws"),
        case="one",
        case_directory=str(evals / "cases" / "one"),
        input_name="input.yaml",
        contents=Contents(
            project_files=("tools", "README.md", "."),
            project_directory=str(evals),
            dataset_directory=str(evals / "cases"),
        ),
    )
    assert listing(workspace) == {
        "input.yaml",
        "output/",
        "tools/",
        "tools/calc.py",
        "README.md",
    }
    assert workspace.notes[0] == "not copied into the workspace: tools/link is a symbolic link"


@pytest.mark.parametrize("entry", ["missing", "../outside", "/etc", "tool_handlers.yaml"])
def test_project_files_that_cannot_be_copied(case: Path, tmp_path: Path, entry: str) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "tool_handlers.yaml").write_text("case_overrides: {a: b}\n")
    (tmp_path / "outside").write_text("x")
    with pytest.raises(RunnerError, match=r"runner\.settings\.project_files lists"):
        create(
            tmp_path,
            project_files=(entry,),
            project_directory=str(tmp_path / "evals"),
            dataset_directory=str(tmp_path / "case"),
        )


def test_the_name_of_a_workspace_tells_nothing() -> None:
    name = workspace_name("run", "evals/eval.yaml", "refund_yes", None, 1)
    assert len(name) == 16
    assert set(name) <= set("0123456789abcdef")
    others = {
        workspace_name("run2", "evals/eval.yaml", "refund_yes", None, 1),
        workspace_name("run", "evals/eval2.yaml", "refund_yes", None, 1),
        workspace_name("run", "evals/eval.yaml", "refund_no", None, 1),
        workspace_name("run", "evals/eval.yaml", "refund_yes", "big", 1),
        workspace_name("run", "evals/eval.yaml", "refund_yes", None, 2),
    }
    assert len(others | {name}) == 6


@given(st.text(max_size=8))
def test_answer_keys_are_known_in_any_letter_case(suffix: str) -> None:
    assert is_answer_key(f"AnnoTations.{suffix}")
    assert is_answer_key(f"ANSWERS.{suffix}")
    assert not is_answer_key(f"my-answers.{suffix}")
    assert not is_answer_key("annotations")
