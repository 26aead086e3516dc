"""The HTML report as a person uses it: filters, order, links, keys, and hostile text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from pytest_agent_eval.reports.html import make
from tests.browser.conftest import Browser
from tests.unit.reports.html_run import ATTACK, Project, rich

ALL = "43 cases"


def test_the_overview_says_what_the_run_came_to(browser: Browser) -> None:
    text = browser.text()
    assert "2 cases did not pass" in text
    assert "commit abcdef012345, with changes" in text
    rows = [row.text.split("\n")[0] for row in browser.all(".comparison tbody tr")]
    assert [row.split()[1] for row in rows] == ["worse", "better", "no"]  # regressions first
    assert "model: m-1 -> m-2" in text
    least = browser.one(".comparison td[title*='10 pairs could have shown a difference of 0.30']")
    assert least.text == "0.30"
    assert [a.text for a in browser.all(".lists a")] == ["refund", "case-1"]
    assert len(browser.all(".judges tbody tr")) == 9  # three judges, two halves and all
    plots = browser.all(".judges svg[role=img]")
    assert plots[0].get_attribute("aria-label").startswith("schema, dev: 0.93 [0.8")
    assert len(browser.all(".judges line.bound.passed")) == 2
    assert "gate ≥ 0.9 passed" in text
    assert "tone: 43 cases cannot tell on which side of 3 the mean is" in text
    browser.one(".counts a.failed").click()
    browser.found(f"2 of {ALL}")
    assert browser.address == "#view=cases&status=failed"
    assert browser.names == ["refund", "twice"]


def test_filters_leave_cases_and_are_in_the_address(browser: Browser) -> None:
    browser.open("#view=cases")
    browser.found(ALL)
    Select(browser.one(".choice:nth-child(1) select")).select_by_value("holdout")
    browser.found(f"21 of {ALL}")
    Select(browser.one("select[aria-label=Judge]")).select_by_value("schema")
    browser.found(f"0 of {ALL}")  # of the holdout none failed
    assert "No case fits these filters" in browser.text()
    Select(browser.one(".choice:nth-child(1) select")).select_by_value("")
    browser.found(f"2 of {ALL}")
    Select(browser.one("select[aria-label='What the judge said']")).select_by_value("regressed")
    browser.found(f"1 of {ALL}")
    assert browser.names == ["refund"]
    assert browser.address == "#view=cases&judge=schema%3Aregressed"
    browser.one("button.plain").click()
    browser.found(ALL)
    browser.open("#view=cases&tag=channel%3Demail&category=return")  # a link from elsewhere
    browser.found(f"1 of {ALL}")
    chosen = [Select(box).first_selected_option.text for box in browser.all(".choice.on select")]
    assert chosen == ["return", "channel=email"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("CASE-1", 11),
        ("expected hl-1", 1),  # a rationale
        ("all of it back", 0),  # said by the baseline alone
        ("you get it back", 1),  # an output
        ("trial 1 said so", 1),
        ("<script>window.hacked", 1),
    ],
)
def test_search_looks_at_names_rationales_and_outputs(
    browser: Browser, words: str, found: int
) -> None:
    browser.open("#view=cases")
    browser.press("/")
    browser.until(lambda: browser.run("return document.activeElement.id") == "search", "focus")
    for letter in words:
        browser.press(letter)
    browser.found(f"{found} of {ALL}")
    box = browser.one("#search")
    assert box.get_attribute("value") == words
    assert browser.run("return document.activeElement.id") == "search"
    browser.press(Keys.ESCAPE)
    assert browser.run("return document.activeElement.id") == "grid"


def test_columns_sort_in_both_directions_with_empty_ones_last(browser: Browser) -> None:
    browser.open("#view=cases")
    head = ".head [role=columnheader]"

    def sorts() -> list[str]:
        return [cell.get_attribute("aria-sort") for cell in browser.all(head)]

    def tones() -> list[str]:
        cells = browser.run(
            "return [...document.querySelectorAll('.body .row')]"
            ".sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
            ".map(row => row.children[4].innerText.trim())"
        )
        return [str(cell) for cell in cells]

    browser.one(f"{head}:nth-child(5) button").click()
    browser.until(lambda: sorts()[4] == "ascending", "order")
    assert [text[0] for text in tones()[:3]] == ["1", "1", "1"]
    assert browser.run("return document.activeElement.title") == "tone"  # the focus stays
    browser.press(Keys.ENTER)
    browser.until(lambda: sorts()[4] == "descending", "order")
    assert [text[0] for text in tones()[:3]] == ["5", "5", "5"]
    assert browser.address == "#view=cases&sort=-judge%3Atone"
    browser.open("#view=cases&sort=-case")
    assert browser.names[:3] == ["twice", "refund", "case-39"]  # as people count
    browser.open("#view=cases&sort=judge%3Anames_the_order")
    assert browser.names[0] == "refund"  # nothing has a value: the order of the run


def test_the_back_button_and_links_to_a_case(browser: Browser) -> None:
    browser.open("#view=cases&status=failed&sort=-case")
    browser.found(f"2 of {ALL}")
    browser.one("#row-1").click()
    browser.until(lambda: "order is HL-9" in browser.text(), "case")
    assert browser.address == "#view=case&case=refund&status=failed&sort=-case"
    assert "2 of 2" in browser.text(".steps")
    browser.press("k")
    browser.until(lambda: browser.text("h1").endswith("twice"), "case before")
    browser.driver.back()
    browser.until(lambda: browser.text("h1").endswith("refund"), "case")
    browser.driver.back()
    browser.found(f"2 of {ALL}")
    assert browser.all("#row-1.current")
    browser.driver.forward()
    browser.until(lambda: browser.text("h1").endswith("refund"), "case")
    browser.press(Keys.ESCAPE)
    browser.found(f"2 of {ALL}")
    browser.open("#view=case&case=no-such-case")
    assert "no such case" in browser.text()


def test_keys_move_through_a_table_that_is_longer_than_the_window(browser: Browser) -> None:
    browser.open("#view=cases")
    grid = browser.one("#grid")
    assert grid.get_attribute("role") == "grid"
    assert grid.get_attribute("aria-rowcount") == "44"
    shown = len(browser.all(".body .row"))
    assert shown < 43  # the others are no elements
    browser.press("j", "j", Keys.ARROW_DOWN, "k")
    assert grid.get_attribute("aria-activedescendant") == "row-2"
    ring = browser.run(
        "return getComputedStyle(document.querySelector('.row.current'), '::after').borderTopStyle"
    )
    assert ring == "solid"  # where the focus is can be seen
    browser.press(Keys.END)
    assert grid.get_attribute("aria-activedescendant") == "row-42"
    last = browser.one("#row-42")
    assert last.get_attribute("aria-selected") == "true"
    assert browser.run(
        "const r = arguments[0].getBoundingClientRect(); return r.bottom <= innerHeight && r.top > 0",
        last,
    )
    browser.press(Keys.HOME, Keys.ENTER)
    browser.until(lambda: browser.text("h1").endswith("refund"), "case")
    browser.press("o")
    browser.until(lambda: browser.all(".overview"), "overview")
    browser.press("?")
    assert "Enter" in browser.text("dialog")
    browser.press(Keys.ESCAPE)
    browser.until(lambda: not browser.all("dialog"), "end of the dialog")


def test_light_and_dark(browser: Browser) -> None:
    def back() -> str:
        return str(browser.run("return getComputedStyle(document.documentElement).backgroundColor"))

    assert back() == "rgb(255, 255, 255)"
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.open()
    assert back() == "rgb(20, 24, 29)"
    browser.one("#theme").click()
    assert back() == "rgb(255, 255, 255)"
    browser.open()
    assert back() == "rgb(255, 255, 255)"  # what was chosen stays


def test_the_page_of_a_case(browser: Browser) -> None:
    browser.open("#view=case&case=refund")
    browser.until(lambda: "Record:" in browser.text(), "case")
    text = browser.text()
    lines = [
        (line.get_attribute("class").split()[1], line.text)
        for line in browser.all(".fold:nth-of-type(1) .difference .line")
    ]
    assert ("gone", '−\n  "order": "HL-1"') in lines
    assert any(kind == "come" and "12345678901234567890" in said for kind, said in lines)
    assert "−\n- HL-2\n+\n- HL-2 returned" in text  # what was changed in place
    assert "this run\nYou get it back." in text
    assert "baseline\nYou get all of it back." in text
    verdicts = [row.text for row in browser.all(".verdicts tbody tr")]
    assert verdicts[0].startswith("schema ✗ failed ✓ passed\norder is HL-9, expected HL-1")
    image = browser.one("img")
    assert browser.run("return arguments[0].naturalWidth", image) == 10
    assert "output/blob.bin" in text
    assert "May I have my money back?" in text
    assert "warning: slow" in text
    calls = browser.all(".events .event summary")
    assert [call.text.split()[1] for call in calls] == ["Read", "Bash"]
    calls[1].click()
    assert "exit status 1" in browser.text(".events .event.failed")
    link = browser.one(".record a").get_attribute("href")
    record = browser.report.parent / ".agent-eval/runs/20260102T000000Z-ab12/cases/refund/1"
    assert link == record.as_uri()


def test_trials_can_be_switched(browser: Browser) -> None:
    browser.open("#view=case&case=twice")
    browser.until(
        lambda: "trial 1 said so" in browser.text(".verdicts"), "first trial, which failed"
    )
    browser.one(".trials a:nth-child(2)").click()
    browser.until(lambda: "trial 2 said so" in browser.text(".verdicts"), "second trial")
    assert browser.address == "#view=case&case=twice&trial=2"


def test_hostile_text_is_shown_and_does_nothing(browser: Browser) -> None:
    browser.open("#view=cases&q=attack")
    browser.found(f"1 of {ALL}")
    browser.press("j", Keys.ENTER)
    browser.until(lambda: "Record:" in browser.text(), "case")
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    text = browser.text()
    assert "<img src=x onerror='window.hacked=2'>" in text
    assert "␛[31mred␛[0m ␀ \\x9b \\u202eoverride" in text
    assert "\\udc80 half \\u200bno width" in text
    assert "\u202e" not in text
    assert "{data} %DATA% ${hacked}" in text
    assert "cut: " in text  # a line of ten million characters
    assert "caf\ufffd" in text
    assert "<svg onload=" in text
    assert browser.all("main svg:not(.plot), main script, main iframe, main img") == []
    assert browser.run("return [...document.querySelectorAll('.control')].length") > 20
    assert browser.run("return document.querySelector('pre').scrollWidth < innerWidth")
    browser.open("#view=overview")
    assert "<script>window.hacked=1</script>" in browser.text(".run")


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("address", ["", "#view=cases", "#view=case&case=refund"])
def test_nothing_is_wider_than_the_window(browser: Browser, width: int, address: str) -> None:
    size = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.open(address)
    browser.until(lambda: browser.text(), "page")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_a_browser_that_cannot_unpack_says_so(browser: Browser) -> None:
    script = {"source": "delete window.DecompressionStream"}
    found = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    try:
        browser.open("#view=case&case=refund")
        browser.until(lambda: "has no DecompressionStream" in browser.text(), "message")
        browser.open("#view=cases&q=refund")
        browser.found(f"1 of {ALL} (names only: this browser cannot unpack the outputs)")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", found)


def test_a_report_that_was_moved_needs_nothing_beside_it(browser: Browser, tmp_path: Path) -> None:
    moved = tmp_path / "other name.html"
    moved.write_bytes(browser.report.read_bytes())
    browser.open("#view=case&case=refund", moved)
    browser.until(lambda: "May I have my money back?" in browser.text(), "input")


def test_a_run_without_cases_or_records(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    make(path).finished(Project(tmp_path).finished())
    browser.open("", path)
    assert browser.text("h1") == "2 gates missed"
    browser.open("#view=cases", path)
    assert "This run has no case to show." in browser.text()


def test_texts_of_many_lines_are_compared_in_a_moment(browser: Browser, tmp_path: Path) -> None:
    project = rich(tmp_path)
    old = "".join(f"line {n}\n" for n in range(3000))
    new = "".join(f"line {n}\n" for n in range(3000) if n % 7) + "end\n"
    project.case("long", {"input.yaml": "prompt: x\n", "big.txt": old})
    project.add("long", files={"files/_modified/big.txt": new})
    path = tmp_path / "report.html"
    make(path).finished(project.finished())
    browser.open("#view=case&case=long", path)
    browser.until(lambda: browser.all(".difference .line.come"), "difference")
    gone = [line.text.split("\n")[1] for line in browser.all(".difference .line.gone")]
    assert gone == [f"line {n}" for n in range(0, 3000, 7)]
    assert [line.text for line in browser.all(".difference .line.come")] == ["+\nend"]


def test_a_name_that_only_markup_could_break_is_linked(browser: Browser) -> None:
    names = browser.run(
        "return JSON.parse(document.getElementById('data').textContent).cases"
        ".map(one => one.n).filter(name => name.startsWith('attack')).map(n => JSON.stringify(n))"
    )
    assert [json.loads(name) for name in names] == [f"attack{ATTACK}"]
    browser.open("#view=cases&q=attack")
    browser.found(f"1 of {ALL}")
    browser.one("#row-0 a").click()
    browser.until(lambda: browser.all("h1 bdi"), "case")
    assert "attack<script>" in browser.text("h1")
