from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agent_eval.suite.tree_digest import tree_digest


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "plugin" / "skills" / "greet").mkdir(parents=True)
    (tmp_path / "plugin" / "skills" / "greet" / "SKILL.md").write_text("Greet.")
    (tmp_path / "plugin" / "link").symlink_to("skills")
    return tmp_path / "plugin"


@pytest.mark.parametrize(
    "change",
    [
        lambda plugin: (plugin / "skills/greet/SKILL.md").write_text("Greet!"),
        lambda plugin: (plugin / "skills/greet/more.md").write_text(""),
        lambda plugin: (plugin / "skills/greet/SKILL.md").unlink(),
        lambda plugin: (plugin / "skills/greet").rename(plugin / "skills/hail"),
        lambda plugin: [(plugin / "link").unlink(), (plugin / "link").symlink_to("elsewhere")],
    ],
    ids=["content", "file", "removed", "name", "link"],
)
def test_whatever_changes_counts(plugin: Path, change: Callable[[Path], object]) -> None:
    before = tree_digest(["plugin"], plugin.parent)
    assert tree_digest(["plugin"], plugin.parent) == before
    change(plugin)
    assert tree_digest(["plugin"], plugin.parent) != before


def test_what_says_nothing_does_not_count(plugin: Path) -> None:
    before = tree_digest(["plugin"], plugin.parent)
    (plugin / ".git").mkdir()
    (plugin / ".git" / "HEAD").write_text("x")
    (plugin / "skills" / "__pycache__").mkdir()
    os.utime(plugin / "skills" / "greet" / "SKILL.md", (1, 1))
    assert tree_digest(["plugin"], plugin.parent) == before
    assert tree_digest([str(plugin)], "/") != tree_digest(["nothing"], plugin.parent)


def test_pipes_loops_and_what_is_missing_do_no_harm(plugin: Path) -> None:
    os.mkfifo(plugin / "pipe")
    (plugin / "loop").symlink_to(".")
    assert tree_digest(["plugin", "nothing"], plugin.parent)


@pytest.mark.parametrize("bound", [{"max_bytes": 3}, {"max_files": 0}])
def test_only_so_much_is_read(plugin: Path, bound: dict[str, int]) -> None:
    file = plugin / "skills" / "greet" / "SKILL.md"
    os.utime(file, (1, 1))
    before = tree_digest(["plugin"], plugin.parent, **bound)
    file.write_text("Hello.")
    os.utime(file, (1, 1))
    assert tree_digest(["plugin"], plugin.parent, **bound) == before
    os.utime(file, (2, 2))
    assert tree_digest(["plugin"], plugin.parent, **bound) != before
