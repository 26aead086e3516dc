from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.saved_tree import SavedTree, TreeLimits


class Place:
    """A directory, and where it is saved."""

    def __init__(self, root: Path) -> None:
        self.root = root / "checkout"
        self.root.mkdir()
        self.store = root / "store"
        self.aside = root / "aside"
        self.aside.mkdir()
        (self.root / "a.txt").write_text("a\n")
        (self.root / "src").mkdir()
        (self.root / "src" / "b.py").write_text("b = 1\n")
        (self.root / "src" / "run.sh").write_text("#!/bin/sh\n")
        (self.root / "src" / "run.sh").chmod(0o755)
        (self.root / "link").symlink_to("a.txt")
        (self.root / "empty").mkdir()

    def tree(self, *excluded: str, limits: TreeLimits | None = None) -> SavedTree:
        options = {} if limits is None else {"limits": limits}
        return SavedTree(str(self.store), str(self.root), excluded, **options)

    def state(self) -> dict[str, tuple[int, bytes, int]]:
        """Mode, content and mtime of everything; a link's content is its target."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            status = path.lstat()
            content, mtime = b"", 0
            if path.is_symlink():
                content = os.fsencode(os.readlink(path))
            elif path.is_file():
                content, mtime = path.read_bytes(), status.st_mtime_ns
            found[str(path.relative_to(self.root))] = (status.st_mode, content, mtime)
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def edit(place: Place) -> None:
    (place.root / "a.txt").write_text("changed\n")


def edit_with_the_same_size_and_stamp(place: Place) -> None:
    path = place.root / "a.txt"
    status = path.stat()
    path.write_text("A\n")
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))


def delete(place: Place) -> None:
    (place.root / "src" / "b.py").unlink()


def delete_directories(place: Place) -> None:
    delete(place)
    (place.root / "src" / "run.sh").unlink()
    (place.root / "src").rmdir()
    (place.root / "empty").rmdir()


def delete_all(place: Place) -> None:
    import shutil

    shutil.rmtree(place.root)


def create(place: Place) -> None:
    (place.root / "new" / "deep").mkdir(parents=True)
    (place.root / "new" / "deep" / "x").write_text("x")
    (place.root / "new" / "pipe").unlink(missing_ok=True)
    os.mkfifo(place.root / "new" / "pipe")


def change_kinds(place: Place) -> None:
    (place.root / "a.txt").unlink()
    (place.root / "a.txt").mkdir()
    (place.root / "a.txt" / "inside").write_text("x")
    (place.root / "empty").rmdir()
    (place.root / "empty").write_text("a file now")
    (place.root / "link").unlink()
    (place.root / "link").symlink_to("src")


def change_modes(place: Place) -> None:
    (place.root / "src" / "run.sh").chmod(0o600)
    (place.root / "a.txt").chmod(0)
    (place.root / "src").chmod(0)
    place.root.chmod(0o500)


def replace_a_directory_by_a_link(place: Place) -> None:
    outside = place.root.parent / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("not in the checkout\n")
    (place.root / "src").rename(place.root.parent / "moved")
    (place.root / "src").symlink_to(outside)


@pytest.mark.parametrize(
    "act",
    [
        edit,
        edit_with_the_same_size_and_stamp,
        delete,
        delete_directories,
        delete_all,
        create,
        change_kinds,
        change_modes,
        replace_a_directory_by_a_link,
    ],
)
def test_whatever_is_done_is_taken_back(place: Place, act: Callable[[Place], None]) -> None:
    before, mode = place.state(), place.root.stat().st_mode
    tree = place.tree()
    saved = tree.save()
    act(place)
    tree.set_back(saved, str(place.aside))
    assert place.state() == before
    assert place.root.stat().st_mode == mode


def test_a_link_in_place_of_a_directory_leads_nobody_outside(place: Place) -> None:
    tree = place.tree()
    saved = tree.save()
    replace_a_directory_by_a_link(place)
    tree.set_back(saved, str(place.aside))
    outside = place.root.parent / "outside"
    assert [path.name for path in outside.iterdir()] == ["b.py"]
    assert (outside / "b.py").read_text() == "not in the checkout\n"


def test_what_is_taken_away_is_kept(place: Place) -> None:
    tree = place.tree()
    saved = tree.save()
    edit(place)
    delete(place)
    create(place)
    found = tree.set_back(saved, str(place.aside))
    assert found.changed == ("a.txt",)
    assert found.deleted == ("src/b.py",)
    assert set(found.created) == {"new/deep/x", "new/pipe"}
    assert (place.aside / "a.txt").read_text() == "changed\n"
    assert (place.aside / "new" / "deep" / "x").read_text() == "x"


def test_nothing_changed(place: Place) -> None:
    tree = place.tree()
    assert tree.set_back(tree.save(), str(place.aside)) == ((), (), ())
    assert list(place.aside.iterdir()) == []


def test_the_copy_is_one_for_people_too(place: Place) -> None:
    place.tree().save()
    assert (place.store / "saved" / "src" / "b.py").read_text() == "b = 1\n"
    assert os.readlink(place.store / "saved" / "link") == "a.txt"
    assert stat.S_IMODE((place.store / "saved").stat().st_mode) == 0o700


def test_saving_again_follows_what_has_changed(place: Place) -> None:
    tree = place.tree()
    tree.save()
    edit(place)
    delete(place)
    change_kind = place.root / "link"
    change_kind.unlink()
    change_kind.mkdir()
    again = place.tree()
    saved = again.save()
    copies = place.store / "saved"
    assert (copies / "a.txt").read_text() == "changed\n"
    assert not (copies / "src" / "b.py").exists()
    assert (copies / "link").is_dir()
    before = place.state()
    delete_all(place)
    again.set_back(saved, str(place.aside))
    assert place.state() == before


def test_what_is_excluded_is_left_alone(place: Place) -> None:
    (place.root / "big" / "inner").mkdir(parents=True)
    (place.root / "big" / "inner" / "run").write_text("1")
    (place.root / "big" / "lost").write_text("1")
    tree = place.tree("big/inner", "src")
    saved = tree.save()
    assert not (place.store / "saved" / "src").exists()
    (place.root / "big" / "inner" / "run").write_text("2")
    (place.root / "src" / "b.py").write_text("mine\n")
    (place.root / "big" / "lost").unlink()
    tree.set_back(saved, str(place.aside))
    assert (place.root / "big" / "inner" / "run").read_text() == "2"
    assert (place.root / "src" / "b.py").read_text() == "mine\n"
    assert (place.root / "big" / "lost").read_text() == "1"


def test_a_file_with_another_name_outside_is_set_back_under_both(place: Place) -> None:
    other = place.root.parent / "cache"
    os.link(place.root / "a.txt", other)
    tree = place.tree()
    saved = tree.save()
    edit(place)
    assert other.read_text() == "changed\n"
    tree.set_back(saved, str(place.aside))
    assert other.read_text() == "a\n"


@pytest.mark.parametrize("limits", [TreeLimits(5, 100), TreeLimits(10_000, 2)])
def test_too_large(place: Place, limits: TreeLimits) -> None:
    with pytest.raises(RunnerError, match=r"in 3 files\n.*runner.settings.unprotected"):
        place.tree(limits=limits).save()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_refused(place: Place) -> None:
    (place.root / "a.txt").chmod(0)
    with pytest.raises(RunnerError, match=r"a\.txt cannot be saved: Permission denied"):
        place.tree().save()


def test_names_that_are_no_text(place: Place) -> None:
    name = os.fsencode(place.root) + b"/\xff.bin"
    with open(name, "wb") as stream:
        stream.write(b"\0")
    tree = place.tree()
    saved = tree.save()
    os.unlink(name)
    tree.set_back(saved, str(place.aside))
    with open(name, "rb") as stream:
        assert stream.read() == b"\0"
    place.tree().save()


def test_what_cannot_be_set_back_is_said_and_where_it_is(place: Place) -> None:
    tree = place.tree()
    saved = tree.save()
    delete(place)
    (place.store / "saved" / "src" / "b.py").unlink()
    with pytest.raises((RunnerError, OSError), match=r"b\.py"):
        tree.set_back(saved, str(place.aside))
