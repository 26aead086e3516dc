"""The process in which models are asked: one of its own, and one that workers share."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from pytest_agent_eval.llm import ModelProcess
from pytest_agent_eval.llm.errors import ProviderError
from tests.provider import Answer, Provider, provider, text

MINE = "TEST_OF_THE_MODEL_PROCESS"
RUN = "PYTEST_XDIST_TESTRUNUID"


@pytest.fixture(autouse=True)
def mine(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks the processes of a test, and sees that none is left."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MINE, value)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    yield value
    gc.collect()  # what a test that failed did not close
    psutil.wait_procs(processes(value), timeout=30)
    assert not processes(value)


@pytest.fixture(params=["own", "shared"])
def kind(request: pytest.FixtureRequest, mine: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "own":
        monkeypatch.delenv(RUN, raising=False)
    else:
        monkeypatch.setenv(RUN, mine)
    return str(request.param)


@pytest.fixture
def shared(mine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, mine)


def processes(value: str, module: str = "llm.") -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            name = f"pytest_agent_eval.{module}"
            ours = any(name in word for word in process.cmdline())
            if ours and process.environ().get(MINE) == value:
                found.append(process)
    return found


def forks(value: str) -> list[psutil.Process]:
    servers = {process.pid for process in processes(value, "llm.fork_server")}
    return [process for process in processes(value) if process.ppid() in servers]


def askers(value: str) -> list[psutil.Process]:
    """The processes that ask, whether a server forks them or not."""
    return [*processes(value, "llm.worker"), *forks(value)]


def ask(models: ModelProcess, server: Provider, prompt: str = "How many?") -> str:
    messages = [{"role": "user", "content": prompt}]
    reply = models.call(
        "openai/some-model", messages, timeout=60, api_base=server.url, parameters={}
    )
    return reply.text


def test_a_process_that_dies_fails_its_calls_and_the_next_one_has_another(
    kind: str, mine: str
) -> None:
    models = ModelProcess()
    asked = threading.Event()

    def kill() -> None:
        if not asked.is_set():
            asked.set()
            for process in askers(mine):
                process.kill()

    with provider(lambda asked: Answer(content="three", before=kill)) as server:
        with pytest.raises(
            ProviderError, match="the process that asks models ended with status -9"
        ):
            ask(models, server)
        assert ask(models, server) == "three"
    models.close()
    models.close()
    with pytest.raises(ProviderError, match="the session has ended"):
        ask(models, server)


def test_the_process_ends_with_who_started_it(kind: str, mine: str) -> None:
    script = """\
        import sys
        from pytest_agent_eval.llm import ModelProcess
        models = ModelProcess()
        models.start()
        print("started", flush=True)
        sys.stdin.read()
        """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "started\n"
        found = processes(mine)
        assert found
        starter.kill()
    _, left = psutil.wait_procs(found, timeout=60)
    assert not left


@pytest.mark.usefixtures("shared")
def test_workers_of_one_run_share_an_import_and_no_variable(
    mine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with provider(lambda asked: text("three")) as server, ThreadPoolExecutor(4) as pool:
        several = [ModelProcess() for _ in range(4)]
        list(pool.map(ModelProcess.start, several))
        assert set(pool.map(lambda one: ask(one, server), several)) == {"three"}
        assert len(forks(mine)) == 4
        assert len({process.ppid() for process in forks(mine)}) == 1
        assert not processes(mine, "llm.worker")

        keys = [headers["authorization"] for headers in server.headers]
        assert set(keys) == {"Bearer k"}
        monkeypatch.setenv("OPENAI_API_KEY", "another")
        monkeypatch.chdir(tmp_path)
        late = ModelProcess()
        assert ask(late, server) == "three"
        assert server.headers[-1]["authorization"] == "Bearer another"
        assert len({process.ppid() for process in forks(mine)}) == 1
        assert str(tmp_path) in {process.cwd() for process in forks(mine)}

        # What LiteLLM reads when it is imported cannot be another for one of them.
        monkeypatch.setenv("LITELLM_LOG", "ERROR")
        other = ModelProcess()
        assert ask(other, server) == "three"
        assert len({process.ppid() for process in forks(mine)}) == 2
        for models in (*several, late, other):
            models.close()


@pytest.mark.usefixtures("shared")
def test_one_that_is_closed_before_it_is_there(mine: str) -> None:
    models = ModelProcess()
    models.start()
    models.close()


@pytest.mark.usefixtures("shared")
def test_a_server_that_dies_costs_the_calls_under_way(mine: str) -> None:
    models = ModelProcess()
    with provider(lambda asked: text("three")) as server:
        assert ask(models, server) == "three"
        for process in processes(mine, "llm.fork_server"):
            process.kill()
        models.close()
        models = ModelProcess()
        assert ask(models, server) == "three"
    models.close()


@pytest.mark.usefixtures("shared")
def test_nothing_is_shared_by_way_of_a_directory_of_others(
    mine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    models = ModelProcess()
    models.start()
    (directory,) = tmp_path.glob("agent-eval-*")
    assert directory.stat().st_mode & 0o777 == 0o700
    models.close()
    directory.chmod(0o777)
    models = ModelProcess()
    models.start()
    deadline = time.monotonic() + 30
    while not processes(mine, "llm.worker") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes(mine, "llm.worker")
    models.close()
