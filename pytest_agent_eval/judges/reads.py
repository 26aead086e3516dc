"""Which files the agent read, as far as its tool calls tell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from pytest_agent_eval.judges.calls import Call

__all__ = ["paths_read"]

_READERS = frozenset(
    {"read", "read_file", "readfile", "read_text_file", "read_multiple_files", "view", "open_file",
     "notebookread", "cat", "get_file_contents", "view_file"}
)  # fmt: skip
_SEARCHERS = frozenset({"grep", "grep_search", "search_file", "ripgrep"})
_SHELLS = frozenset(
    {"bash", "shell", "sh", "exec", "exec_command", "local_shell", "run_command",
     "run_shell_command", "command_execution", "terminal", "execute_command"}
)  # fmt: skip
_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "paths", "target_file")
_COMMANDS = frozenset(
    {"cat", "head", "tail", "less", "more", "sed", "awk", "nl", "bat", "grep", "egrep", "fgrep",
     "rg", "wc", "tac", "jq", "yq", "cut", "sort", "diff"}
)  # fmt: skip
_SEARCH_COMMANDS = frozenset({"grep", "egrep", "fgrep", "rg"})
_SCRIPTED = _SEARCH_COMMANDS | {"sed", "awk", "jq", "yq"}
"""Their first word that is no option is a pattern or a script."""
_WRAPPERS = frozenset({"bash", "sh", "zsh", "env", "sudo"})
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&", "|&", "(", ")", "\n"})


def paths_read(call: Call, *, include_grep: bool) -> Iterator[str]:
    """The paths a call read: of reading and searching tools, and of reading shell commands."""
    name = call.name.rpartition("__")[2].lower()  # mcp__files__read_file
    if name in _READERS or (include_grep and name in _SEARCHERS):
        yield from _named_paths(call.input)
    elif name in _SHELLS:
        yield from _of_command(call.input.get("command", call.input.get("cmd")), include_grep)


def _named_paths(given: Any) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = given.get(key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item


def _of_command(command: Any, include_grep: bool) -> Iterator[str]:
    words = _words(command)
    if len(words) >= 3 and words[0].rpartition("/")[2] in _WRAPPERS and words[1] in (
        "-c", "-lc", "-ic"
    ):  # fmt: skip
        words = _words(words[2])
    part: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            part.append(word)
            continue
        yield from _of_simple_command(part, include_grep)
        part = []


def _of_simple_command(words: list[str], include_grep: bool) -> Iterator[str]:
    if not words:
        return
    command = words[0].rpartition("/")[2]
    if command not in _COMMANDS or (command in _SEARCH_COMMANDS and not include_grep):
        return
    ignored = command in _SCRIPTED
    for word in words[1:]:
        if ignored and not word.startswith("-"):
            ignored = False
        elif word in (">", ">>"):
            ignored = True
        elif word != "<" and not word.startswith("-"):
            yield word


def _words(command: Any) -> list[str]:
    if isinstance(command, (list, tuple)):
        return [str(word) for word in command]
    if not isinstance(command, str):
        return []
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote: what a shell would make of it is anybody's guess
        return re.split(r"\s+", command)
