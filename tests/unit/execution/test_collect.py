from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agent_eval.execution.collect import Collected, Limits, collect
from pytest_agent_eval.execution.manifest import (
    Manifest,
    case_digest,
    case_manifest,
    changed_in,
    changes,
)
from pytest_agent_eval.execution.workspace import Contents, Workspace, create_workspace
from pytest_agent_eval.results import Usage


@pytest.fixture
def workspace(case: Path, tmp_path: Path) -> Workspace:
    return create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=("notes.md", "data"), outputs=("reports", "sum.md")),
    )


@pytest.fixture
def collected(workspace: Workspace, tmp_path: Path) -> Callable[..., Collected]:
    return lambda **options: collect(
        workspace, str(tmp_path / "trial"), ("reports", "sum.md", "output/x"), **options
    )


@pytest.fixture
def ws(workspace: Workspace) -> Path:
    return Path(workspace.directory)


def stored(tmp_path: Path) -> dict[str, bytes]:
    root = tmp_path / "trial" / "files"
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_an_agent_that_does_nothing_leaves_nothing(
    collected: Callable[..., Collected], tmp_path: Path
) -> None:
    assert collected() == Collected()
    assert not (tmp_path / "trial").exists()


def test_outputs_edits_and_new_files_are_copied(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    (ws / "output" / "answer.txt").write_text("42")
    (ws / "reports" / "deep").mkdir()
    (ws / "reports" / "deep" / "r.bin").write_bytes(b"\0\xff")
    (ws / "sum.md").write_text("sum")
    (ws / "notes.md").write_text("# Edits\n")
    (ws / "new").mkdir()
    (ws / "new" / "file.txt").write_text("new")
    (ws / "data" / "a.csv").unlink()
    result = collected()
    assert stored(tmp_path) == {
        "output/answer.txt": b"42",
        "reports/deep/r.bin": b"\0\xff",
        "sum.md": b"sum",
        "_modified/notes.md": b"# Edits\n",
        "_modified/new/file.txt": b"new",
    }
    assert (result.files, result.modified) == (3, 3)
    assert result.notes == ("the agent deleted data/a.csv",)


def test_an_edit_of_the_same_size_with_its_time_set_back_is_found(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    time.sleep(0.1)
    before = (ws / "notes.md").stat()
    (ws / "notes.md").write_text("# Nodes\n")
    os.utime(ws / "notes.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert collected().modified == 1
    assert stored(tmp_path) == {"_modified/notes.md": b"# Nodes\n"}


def test_an_edit_at_once_after_the_copy_is_found(
    collected: Callable[..., Collected], ws: Path
) -> None:
    with open(ws / "input.yaml", "r+b") as stream:
        stream.write(b"P")
    assert collected().modified == 1


def test_a_file_that_was_touched_or_written_again_alike_is_unchanged(
    collected: Callable[..., Collected], ws: Path
) -> None:
    content = (ws / "notes.md").read_bytes()
    (ws / "notes.md").unlink()
    (ws / "notes.md").write_bytes(content)
    os.utime(ws / "input.yaml")
    assert collected() == Collected()


def test_a_file_replaced_by_a_directory(collected: Callable[..., Collected], ws: Path) -> None:
    (ws / "notes.md").unlink()
    (ws / "notes.md").mkdir()
    result = collected()
    assert result.modified == 1
    assert result.notes == ("the agent deleted notes.md",)


def test_links_pipes_and_sockets_are_not_collected(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    (ws / "output" / "passwd").symlink_to("/etc/passwd")
    (ws / "output" / "etc").symlink_to("/etc")
    (ws / "extra").symlink_to("/etc/passwd")
    (ws / "notes.md").unlink()
    (ws / "notes.md").symlink_to("/etc/passwd")
    os.mkfifo(ws / "output" / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(ws / "output")
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        result = collected()
    assert not (tmp_path / "trial" / "files" / "output").exists()
    assert set(result.notes) == {
        "not collected: output/passwd is a symbolic link",
        "not collected: output/etc is a symbolic link",
        "not collected: output/pipe is a named pipe",
        "not collected: output/socket is a socket",
        "not collected: extra is a symbolic link",
        "not collected: notes.md is a symbolic link",
    }
    assert result.files == 0


def test_an_output_directory_replaced_by_a_link_is_not_followed(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    (ws / "reports").rmdir()
    (ws / "reports").symlink_to("/etc")
    result = collected()
    assert result.notes == ("not collected: reports is a symbolic link",)
    assert not (tmp_path / "trial").exists()


def test_a_deleted_or_replaced_workspace_is_a_note(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    shutil.rmtree(ws)
    expected = Collected(modified=1, notes=("the agent deleted or replaced its workspace",))
    assert collected() == expected
    ws.symlink_to("/etc")
    assert collected() == expected
    assert not (tmp_path / "trial").exists()


def test_strange_names_survive(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    names = [b"\xff\xfe.txt", b"a\nb\x1b[31m.txt", "\u200bä.txt".encode(), b"a\\b", b"-rf"]
    for name in names:
        with open(os.path.join(os.fsencode(ws), b"output", name), "wb") as stream:
            stream.write(name)
    assert collected().files == len(names)
    found = stored(tmp_path)
    assert {os.fsencode(name): data for name, data in found.items()} == {
        b"output/" + name: name for name in names
    }


def test_what_is_beyond_the_limits_is_left_out_with_a_note(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    for number in range(5):
        (ws / "output" / f"{number}.txt").write_text("x" * 10)
    with open(ws / "output" / "huge", "wb") as stream:
        stream.truncate(2**40)
    result = collected(limits=Limits(size=2**30, files=3))
    assert result.files == 3
    assert result.notes == (
        "not collected: 3 files beyond the limits of 1,024 MiB and 3 files a trial",
    )
    result = collect_again(collected, tmp_path, limits=Limits(size=25, files=100))
    assert result.files == 2


def collect_again(
    collected: Callable[..., Collected], tmp_path: Path, **options: object
) -> Collected:
    shutil.rmtree(tmp_path / "trial")
    return collected(**options)


def test_many_notes_are_cut(collected: Callable[..., Collected], ws: Path) -> None:
    for number in range(30):
        (ws / "output" / f"{number:02}").symlink_to("/")
    notes = collected().notes
    assert len(notes) == 21
    assert notes[-1] == "not collected: 10 more"


def test_metrics_and_events_are_read_and_no_product(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    (ws / "output" / "metrics.json").write_text('{"cost_usd": 0.5, "num_turns": -1}')
    (ws / "output" / "events.jsonl").write_text('{"type": "message", "text": "hi"}\nbroken\n')
    result = collected()
    assert result.files == 0
    assert result.usage == Usage(cost_usd=0.5)
    assert [event["text"] for event in result.events] == ["hi"]
    assert result.notes == (
        "metrics.json: num_turns is -1, expected a count; ignored",
        "events.jsonl: line 2: no JSON object, ignored",
    )
    assert set(stored(tmp_path)) == {"output/metrics.json", "output/events.jsonl"}
    result = collect_again(collected, tmp_path, metrics=False, events=False)
    assert (result.usage, result.events, result.notes) == (Usage(), (), ())


def test_metrics_that_cannot_be_read_are_a_note(
    collected: Callable[..., Collected], ws: Path
) -> None:
    (ws / "output" / "metrics.json").symlink_to("/etc/passwd")
    os.mkfifo(ws / "output" / "events.jsonl")
    notes = collected().notes
    assert any(note.startswith("output/metrics.json cannot be read") for note in notes)
    assert any(note.startswith("output/events.jsonl cannot be read") for note in notes)


def test_metrics_that_are_too_large_are_a_note(
    collected: Callable[..., Collected], ws: Path
) -> None:
    (ws / "output" / "metrics.json").write_bytes(b" " * (1024**2 + 1))
    assert collected().notes == ("output/metrics.json is larger than 1 MiB and was ignored",)


def test_large_files_are_copied_whole(
    collected: Callable[..., Collected], ws: Path, tmp_path: Path
) -> None:
    data = os.urandom(1024) * 3000
    (ws / "output" / "large").write_bytes(data)
    collected()
    assert stored(tmp_path)["output/large"] == data


def test_a_companion_in_an_output_path_is_no_product_until_it_changes(
    case: Path, tmp_path: Path
) -> None:
    workspace = create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=("data",), outputs=("data",)),
    )
    result = collect(workspace, str(tmp_path / "trial"), ("data",))
    assert (result.files, result.modified) == (0, 0)
    shutil.rmtree(tmp_path / "trial")
    Path(workspace.directory, "data", "a.csv").write_text("3,4\n")
    assert collect(workspace, str(tmp_path / "trial"), ("data",)).files == 1
    assert stored(tmp_path)["data/a.csv"] == b"3,4\n"


def test_a_companion_in_an_output_path_may_be_deleted(case: Path, tmp_path: Path) -> None:
    workspace = create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=("data",), outputs=("data",)),
    )
    shutil.rmtree(Path(workspace.directory, "data"))
    assert changes(workspace.directory, workspace.manifest, ["data"]).deleted == ()
    assert len(changes(workspace.directory, workspace.manifest, ["output"]).deleted) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_a_note(collected: Callable[..., Collected], ws: Path) -> None:
    (ws / "output" / "secret").write_text("x")
    (ws / "output" / "secret").chmod(0)
    assert collected().notes == ("not collected: output/secret: Permission denied",)


def test_a_name_that_is_too_long_for_the_store_is_a_note(
    collected: Callable[..., Collected], ws: Path
) -> None:
    here = os.getcwd()
    os.chdir(ws / "output")
    try:
        for _ in range(20):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("leaf").write_text("x")
    finally:
        os.chdir(here)
    result = collected()
    assert result.files == 0


def test_changes_of_the_dataset_are_told(case: Path) -> None:
    before = case_manifest(str(case))
    assert changed_in(str(case), before) == ()
    status = (case / "gold.txt").stat()
    (case / "gold.txt").write_text("43\n")
    os.utime(case / "gold.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    (case / "new.txt").write_text("x")
    (case / "notes.md").unlink()
    time.sleep(0.01)
    assert changed_in(str(case), before) == ("gold.txt", "new.txt", "notes.md")


def test_the_digest_of_a_case_covers_names_and_contents(case: Path) -> None:
    def digest() -> str:
        return case_digest(str(case), case_manifest(str(case)))

    first = digest()
    assert len(first) == 32
    os.utime(case / "gold.txt")
    assert digest() == first
    (case / "gold.txt").write_text("43\n")
    second = digest()
    (case / "gold.txt").rename(case / "silver.txt")
    third = digest()
    (case / "link").symlink_to("/etc/passwd")
    assert len({first, second, third, digest()}) == 4


def test_a_manifest_knows_what_was_copied(workspace: Workspace) -> None:
    assert isinstance(workspace.manifest, Manifest)
    assert set(workspace.manifest.files) == {
        "input.yaml",
        "notes.md",
        "data/a.csv",
        "data/deep/annotations.yaml",
    }


def test_a_large_companion_is_hashed_whole(case: Path, tmp_path: Path) -> None:
    (case / "data" / "large").write_bytes(b"x" * 3 * 1024**2)
    workspace = create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=("data",)),
    )
    copy = Path(workspace.directory, "data", "large")
    os.utime(copy)
    assert changes(workspace.directory, workspace.manifest, ["output"]).changed == ()
    with open(copy, "r+b") as stream:
        stream.seek(2 * 1024**2)
        stream.write(b"y")
    found = changes(workspace.directory, workspace.manifest, ["output"]).changed
    assert [path for path, _ in found] == ["data/large"]
