"""A project that only has the plugin installed notices nothing."""

from __future__ import annotations

import sys

from .conftest import Project

HEAVY = ("pydantic", "yaml", "jinja2", "litellm", "simpleeval", "psutil", "xxhash")

PROBE = f"""\
import sys
import pytest

def pytest_sessionfinish(session):
    print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
"""


def test_nothing_heavy_is_imported_without_a_suite(project: Project) -> None:
    project.write("probe.py", PROBE)
    project.write("test_ordinary.py", "def test_it():\n    pass\n")
    for arguments in (["--collect-only"], []):
        result = project.subprocess("-p", "probe", "-s", *arguments)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*LOADED []*"])


def test_litellm_is_not_imported_by_a_suite_without_models(project: Project) -> None:
    project.write("probe.py", PROBE)
    project.suite()
    project.cases(1)
    result = project.subprocess("-p", "probe", "-s", "--agent-eval")
    result.assert_outcomes(passed=1)
    (line,) = [line for line in result.outlines if "LOADED" in line]
    assert "litellm" not in line
    assert "jinja2" not in line


def test_its_modules_are_loaded_as_they_were_compiled_and_those_of_tests_are_rewritten(
    project: Project,
) -> None:
    project.write(
        "probe.py",
        """\
        import sys

        def pytest_sessionfinish(session):
            ours = [m for name, m in sys.modules.items() if name.startswith("pytest_agent_eval.")]
            kinds = {type(m.__spec__.loader).__name__ for m in ours}
            print("LOADED", len(ours) > 20, kinds)
        """,
    )
    project.write("test_ordinary.py", "def test_it():\n    assert sorted([1]) == [2]\n")
    project.suite()
    project.cases(1)
    result = project.subprocess(
        "-p", "probe", "-s", "--agent-eval", "test_ordinary.py", "eval.yaml"
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*LOADED True {'SourceFileLoader'}*"])
    result.stdout.fnmatch_lines(["*assert [[]1[]] == [[]2[]]*"])


def test_nothing_is_written_or_printed(project: Project) -> None:
    project.write("test_ordinary.py", "def test_it():\n    pass\n")
    result = project.subprocess()
    # pytester keeps the output of the process beside the tests.
    theirs = {"stdout", "stderr", "test_ordinary.py", "tox.ini"}
    found = {path.name for path in project.path.iterdir()}
    assert {name for name in found if not name.startswith(("__pycache__", "runpytest-"))} == theirs
    assert (
        "agent"
        not in result.stdout.str()
        .replace(str(project.path), "")
        .replace("plugins: agent-eval", "")
        .split("collected")[1]
    )


def test_the_package_imports_nothing_but_itself(project: Project) -> None:
    names = (*HEAVY, "pytest")
    script = f"import sys, pytest_agent_eval; print([m for m in sys.modules if m in {names!r}])"
    result = project.pytester.run(sys.executable, "-c", script)
    assert result.outlines == ["[]"]
