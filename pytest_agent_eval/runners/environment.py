"""The environment variables an agent gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pytest_agent_eval.runners.base import Task
from pytest_agent_eval.runners.process_tree import MARKER

__all__ = ["agent_environment", "caller_environment", "references", "resolve_variables"]

_REFERENCE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")

# What tells the agent, or a test run by the agent, that it is inside a test session: the current
# test's name holds the case's name. Coverage of subprocesses (COVERAGE_PROCESS_*) stays on.
_HIDDEN_PREFIXES = ("PYTEST_", "COV_", "AGENT_EVAL_", "TOX_", "NOX_")
_HIDDEN = frozenset({"OLDPWD", "PWD", "_", "INIT_CWD"})

_PATHS = frozenset({"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "PYTHONPATH", "VIRTUAL_ENV", "SHELL"})
"""Needed even where the dataset lies above them."""

_CLEAN = frozenset(
    {"PATH", "HOME", "LANG", "TERM", "TMPDIR"}
    # Behind a proxy TLS needs the proxy's certificate authority as well.
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"}
    | {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"}
    | {"HF_TOKEN", "CLOUD_ML_REGION"}
)
_CLEAN_PREFIXES = (
    "LC_",
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "CLAUDE_",
    "CODEX_",
    "COHERE_",
    "DEEPSEEK_",
    "FIREWORKS_",
    "GEMINI_",
    "GOOGLE_",
    "GROQ_",
    "LITELLM_",
    "MISTRAL_",
    "OLLAMA_",
    "OPENAI_",
    "OPENROUTER_",
    "TOGETHER_",
    "VERTEX",
    "XAI_",
)


def caller_environment(
    policy: str, caller: Mapping[str, str], *, hidden: Sequence[str] = ()
) -> dict[str, str]:
    """What of the caller's environment an agent may see.

    Args:
        policy: ``inherit``: all but what names the test session; ``clean``: only what programs
            need to find their way and providers need for access.
        caller: the caller's environment.
        hidden: directories that no variable may point into, such as the dataset.
    """
    inside = tuple(f"{path.rstrip('/')}/" for path in hidden)
    if policy == "clean":
        return {
            name: value
            for name, value in caller.items()
            if name in _CLEAN or name.startswith(_CLEAN_PREFIXES)
        }
    return {
        name: value
        for name, value in caller.items()
        if name not in _HIDDEN
        and not name.startswith(_HIDDEN_PREFIXES)
        and (name in _PATHS or not f"{value}/".startswith(inside))
    }


def references(values: Iterable[str]) -> list[str]:
    """Names of the caller's variables that values refer to as ``$NAME``."""
    found = [_REFERENCE.fullmatch(value) for value in values]
    return [match[1] or match[2] for match in found if match is not None]


def resolve_variables(
    values: Mapping[str, str], caller: Mapping[str, str], *, key: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Replace values that are ``$NAME`` (or ``${NAME}``) as a whole by the caller's variable.

    Args:
        values: variable -> value, as written in the suite.
        caller: the caller's environment.
        key: where the values come from, for notes: ``execution.env``.

    Returns:
        The variables, and a note for each that was left out because the caller has none.
    """
    resolved: dict[str, str] = {}
    notes: list[str] = []
    for name, value in values.items():
        reference = _REFERENCE.fullmatch(value)
        if reference is None:
            resolved[name] = value
            continue
        source = reference[1] or reference[2]
        if source in caller:
            resolved[name] = caller[source]
        else:
            notes.append(f"{key}.{name}: ${source} is not set, so the variable is left out")
    return resolved, tuple(notes)


def agent_environment(
    task: Task,
    base: Mapping[str, str],
    runner_env: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of one task's process; later sources win.

    Args:
        task: its ``env`` is resolved already.
        base: of :func:`caller_environment`.
        runner_env: ``runner.env``, resolved.
    """
    workspace = str(task.workspace)
    return {
        **base,
        **runner_env,
        **task.env,
        "PWD": workspace,
        "AGENT_EVAL_WORKSPACE": workspace,
        "AGENT_EVAL_OUTPUT_DIR": str(task.output_dir),
        "AGENT_EVAL_MODEL": task.model,
        MARKER: task.trial_id,
    }
