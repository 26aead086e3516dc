from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_agent_eval.runners import process_tree
from pytest_agent_eval.runners.process_tree import (
    Process,
    ProcessTable,
    ProcessTree,
    environment_of,
    processes_by_proc,
    processes_by_psutil,
)

Listing = Callable[[], Iterator[Process]]

both = pytest.mark.parametrize("processes", [processes_by_proc, processes_by_psutil])


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child of its own, in a session of its own."""
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": os.environ["PATH"], "AGENT_EVAL_TRIAL": "family"},
    )
    assert shell.stdout is not None
    shell.stdout.readline()
    yield shell
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    shell.stdout.close()


def started(child: subprocess.Popen[bytes]) -> bytes:
    """The environment of a child, once it has become the program it is to run."""
    while not (found := environment_of(child.pid)):
        assert child.poll() is None
    return found


@both
def test_this_process_is_listed(processes: Listing) -> None:
    me = {process.pid: process for process in processes()}[os.getpid()]
    assert me.parent == os.getppid()
    assert me.session == os.getsid(0)
    assert me.group == os.getpgid(0)


@both
def test_zombies_are_not_listed(processes: Listing) -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.pid not in {process.pid for process in processes()}
    child.wait()


@both
def test_members_are_parent_and_child(family: subprocess.Popen[bytes], processes: Listing) -> None:
    tree = ProcessTree(family.pid, table=ProcessTable(processes))
    members = tree.members()
    assert family.pid in {member.pid for member in members}
    assert len(members) == 2


@both
def test_members_are_found_by_the_marker_alone(
    family: subprocess.Popen[bytes], processes: Listing
) -> None:
    tree = ProcessTree(2**22 - 1, "family", table=ProcessTable(processes))
    assert len(tree.members()) == 2
    assert ProcessTree(2**22 - 1, "famil", table=ProcessTable(processes)).members() == []


def test_a_signal_but_sigkill_is_sent_once(family: subprocess.Popen[bytes]) -> None:
    tree = ProcessTree(family.pid)
    assert len(tree.signal(signal.SIGCONT)) == 2
    assert len(tree.signal(signal.SIGCONT)) == 2
    assert len(tree.signal(signal.SIGKILL)) == 2
    family.wait()
    # Its child is gone once whoever adopted it has heard of its end.
    until = time.monotonic() + 20
    while tree.signal(signal.SIGKILL) and time.monotonic() < until:
        time.sleep(0.01)
    assert tree.signal(signal.SIGKILL) == []


def test_this_process_is_never_a_member() -> None:
    def listing() -> Iterator[Process]:
        yield Process(os.getpid(), 77, 77, 77, 1.0)

    assert ProcessTree(77, table=ProcessTable(listing)).members() == []


def test_a_recorded_process_is_found_where_it_moved() -> None:
    table = [Process(77, 1, 77, 77, 5.0), Process(78, 77, 78, 78, 6.0)]
    tree = ProcessTree(77, table=ProcessTable(lambda: iter(table)))
    tree.record()
    table[:] = [Process(78, 1, 78, 78, 6.0), Process(79, 1, 79, 78, 7.0), Process(80, 1, 80, 80, 8)]
    assert {member.pid for member in tree.members()} == {78, 79}
    assert tree.left_something(0.1)


def test_a_later_process_with_a_recorded_id_is_another_one() -> None:
    table = [Process(77, 1, 77, 77, 5.0), Process(78, 77, 78, 78, 6.0)]
    tree = ProcessTree(77, table=ProcessTable(lambda: iter(table)))
    tree.record()
    table[:] = [Process(78, 1, 78, 78, 60.0)]
    assert tree.members() == []


def test_after_a_long_run_everything_is_looked_at() -> None:
    looked = []

    def listing() -> Iterator[Process]:
        looked.append(True)
        return iter(())

    tree = ProcessTree(2**22 - 1, "x", table=ProcessTable(listing))
    assert not tree.left_something(60.0)
    assert looked


def test_everything_is_looked_at_when_ids_wrapped_around(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def listing() -> Iterator[Process]:
        looked.append(True)
        return iter(())

    monkeypatch.setattr(process_tree, "_last_pid", lambda: 5)
    assert not ProcessTree(2**22 - 1, "x", table=ProcessTable(listing)).left_something(0.1)
    assert looked


def test_the_environment_of_what_is_gone_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert environment_of(child.pid) is None
    monkeypatch.setattr(process_tree, "_LINUX", False)
    assert environment_of(child.pid) is None


def test_a_long_environment_is_read_whole() -> None:
    env = {f"V{number}": "x" * 1000 for number in range(200)}
    child = subprocess.Popen(["sleep", "60"], env={**env, "AGENT_EVAL_TRIAL": "long"})
    try:
        assert started(child).endswith(b"AGENT_EVAL_TRIAL=long\0")
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("linux", [True, False])
def test_the_environment_holds_variables(monkeypatch: pytest.MonkeyPatch, linux: bool) -> None:
    monkeypatch.setattr(process_tree, "_LINUX", linux)
    child = subprocess.Popen(["sleep", "60"], env={"A": "1", "B": "2"})
    try:
        assert set(started(child).split(b"\0")) == {b"A=1", b"B=2", b""}
    finally:
        child.kill()
        child.wait()


def counted(listing: Callable[[], list[Process]], looked: list[int]) -> Listing:
    def processes() -> Iterator[Process]:
        looked.append(1)
        return iter(listing())

    return processes


def test_trees_that_record_share_the_work_of_looking() -> None:
    processes = [Process(pid, 1, pid, pid, 5.0) for pid in range(1000, 1050)]
    processes += [Process(pid + 100, pid, pid, pid + 100, 6.0) for pid in range(1000, 1050)]
    looked: list[int] = []
    table = ProcessTable(counted(lambda: processes, looked))
    table.snapshot()
    trees = [ProcessTree(pid, table=table) for pid in range(1000, 1050)]
    begun = time.monotonic()
    for tree in trees:
        tree.record()
    assert len(looked) <= 1 + 2 * (time.monotonic() - begun) + 1
    del processes[:50]
    for tree in trees:
        assert [process.pid for process in tree.members()] == [tree.root + 100]


def test_a_signal_goes_by_what_runs_now() -> None:
    processes: list[Process] = []
    table = ProcessTable(lambda: iter(processes))
    tree = ProcessTree(2**22 - 1, table=table)
    tree.record()
    late = Process(2**22 - 2, 1, 2**22 - 1, 2**22 - 1, 5.0)
    processes.append(late)
    assert tree.signal(signal.SIGCONT) == [late]


def test_a_snapshot_that_is_young_enough_is_kept() -> None:
    table = ProcessTable(lambda: iter(()))
    first = table.snapshot()
    assert table.snapshot(3600) is first
    assert table.snapshot() is not first


def test_a_marker_that_comes_with_a_later_program_is_seen() -> None:
    script = 'echo; read line; exec env "AGENT_EVAL_TRIAL=late" sleep 60'
    child = subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        table = ProcessTable()
        assert b"late" not in table.snapshot().marked
        child.stdin.write(b"\n")
        child.stdin.flush()
        while b"AGENT_EVAL_TRIAL=late" not in started(child):
            assert child.poll() is None
        assert [process.pid for process in table.snapshot().marked[b"late"]] == [child.pid]
    finally:
        child.kill()
        child.communicate()


def test_environments_are_read_once() -> None:
    child = subprocess.Popen(["sleep", "60"], env={"AGENT_EVAL_TRIAL": "once"})
    try:
        started(child)
        mine = next(item for item in processes_by_proc() if item.pid == child.pid)
        table = ProcessTable(lambda: iter([mine]))
        assert table.snapshot().marked == {b"once": [mine]}
    finally:
        child.kill()
        child.wait()
    # It could not be read again: it is gone.
    assert table.snapshot().marked == {b"once": [mine]}


def test_first_processes_of_other_trees_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen(["true"], start_new_session=True)
    gone.wait()
    child = subprocess.Popen(["sleep", "60"], env={"AGENT_EVAL_TRIAL": "other"})
    try:
        while b"AGENT_EVAL_TRIAL=other" not in started(child):
            assert child.poll() is None
        monkeypatch.setattr(process_tree, "_QUICK_RANGE", 2**22)  # others start processes as well
        monkeypatch.setattr(process_tree, "_last_pid", lambda: child.pid)
        tree = ProcessTree(gone.pid, "other")
        assert tree.left_something(0.1)
        assert not tree.left_something(0.1, {child.pid})
    finally:
        child.kill()
        child.wait()
