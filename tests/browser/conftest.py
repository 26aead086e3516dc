"""A real Chromium, headless, that shows reports from disk."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from pytest_agent_eval.reports.html import make
from tests.unit.reports.html_run import rich_run

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 10.0


class Browser:
    """Chromium with one page, and what it has said and asked for."""

    def __init__(self, driver: webdriver.Chrome, report: Path) -> None:
        self.driver = driver
        self.report = report

    def open(self, address: str = "", report: Path | None = None) -> None:
        """Show a report anew."""
        self.driver.get("about:blank")
        self.driver.get(f"{(report or self.report).as_uri()}{address}")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def one(self, selector: str) -> WebElement:
        """An element, as soon as there is one."""
        self.until(lambda: self.all(selector), f"an element {selector}")
        return self.all(selector)[0]

    def text(self, selector: str = "main") -> str:
        return str(
            self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        )

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"there is no {what}; the page says: {self.text()[:500]}"
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    @property
    def address(self) -> str:
        return str(self.run("return location.hash"))

    @property
    def names(self) -> list[str]:
        """Names of the cases whose rows are in view, from top to bottom."""
        rows = self.run(
            "return [...document.querySelectorAll('.body .row')]"
            ".sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
            ".map(row => row.querySelector('.name').title)"
        )
        return [str(row) for row in rows]

    def found(self, text: str) -> None:
        """Wait until the table says how many cases it shows."""
        self.until(lambda: self.text("#found") == text, f"table that shows {text}")

    def complaints(self) -> list[str]:
        """What the console says that is no mere remark, since it was asked last."""
        logged = self.driver.get_log("browser")
        return [entry["message"] for entry in logged if entry["level"] not in ("INFO", "DEBUG")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since it was asked last, but those of reports."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        found = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in found if not url.startswith(("file:", "data:", "about:"))]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report that shows one of everything."""
    root = tmp_path_factory.mktemp("project")
    path = root / "report.html"
    make(path).finished(rich_run(root))
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.fail("these tests need chromium and chromedriver in PATH")
    options = Options()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield found
    finally:
        found.quit()


@pytest.fixture
def browser(chromium: webdriver.Chrome, report: Path) -> Iterator[Browser]:
    """A page of its own, 1280 x 900; afterwards: no error was logged and nothing was asked for."""
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    page = Browser(chromium, report)
    page.complaints(), page.requests()
    page.open()
    page.run("localStorage.clear()")
    page.open()
    yield page
    assert page.run("return window.hacked") is None
    assert page.complaints() == []
    assert page.requests() == []


__all__ = ["Keys"]
