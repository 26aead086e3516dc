"""Collection of 10,000 case directories against a floor.

The floor is a pytest plugin of a few lines that parses the same annotation files with PyYAML's
C loader and collects as many trivial custom items. Both run as whole pytest processes, in turn.
"""

from __future__ import annotations

import sys

from measure import compare, report, scratch

CASES = 10_000
BOUND = 1.5

SUITE = """\
name: bench
dataset:
  path: cases
  workspace: {files: [notes.md]}
runner: {type: cli, command: [cat, input.yaml]}
judges:
  - {name: worked, check: "return outputs['exit_code'] == 0"}
  - name: easy_only
    if: "annotations.get('difficulty') == 'easy'"
    check: "return True"
  - {name: cheap, builtin: cost_budget}
"""

ANNOTATIONS = """\
category: {category}
difficulty: {difficulty}
tags: [inbox, {length}]
pair: pair-{pair}
topic: delivery
severity: 2
needs_reply: true
expected_files:
  - docs/returns.md
  - docs/delivery.md
expected_output:
  action: refund
  order: "{number}"
  amount: 12.5
note: |
  The customer tells the story first and asks for the refund in the last line.
"""

FLOOR = """\
import os
import pytest
import yaml


class Item(pytest.Item):
    def runtest(self):
        pass


class Cases(pytest.File):
    def collect(self):
        root = os.path.join(self.path.parent, "cases")
        for name in sorted(os.listdir(root)):
            with open(os.path.join(root, name, "annotations.yaml"), "rb") as stream:
                annotations = yaml.load(stream.read(), Loader=yaml.CSafeLoader)
            item = Item.from_parent(self, name=name)
            item.annotations = annotations
            yield item


def pytest_collect_file(file_path, parent):
    if file_path.name == "eval.yaml":
        return Cases.from_parent(parent, path=file_path)


def pytest_ignore_collect(collection_path, config):
    return True if collection_path.name == "cases" else None
"""


def main() -> int:
    """Write the project, measure, print one line."""
    with scratch() as root:
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "eval.yaml").write_text(SUITE)
        (root / "floor.py").write_text(FLOOR)
        for number in range(CASES):
            case = root / "cases" / f"case-{number:05d}"
            case.mkdir(parents=True)
            (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")
            (case / "notes.md").write_text("A note.\n")
            (case / "annotations.yaml").write_text(
                ANNOTATIONS.format(
                    number=number,
                    pair=number // 2,
                    category=("refund", "delivery", "account")[number % 3],
                    difficulty=("easy", "hard")[number % 2],
                    length=("short", "long")[number // 2 % 2],
                )
            )
        pytest = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        floor = [*pytest, "-p", "no:agent-eval", "-p", "floor"]
        ours = [*pytest, "--agent-eval"]
        result = compare(floor, ours, root, rounds=5)
        return 0 if report(f"collect {CASES:,} cases", *result, BOUND) else 1


if __name__ == "__main__":
    sys.exit(main())
