"""The page of a large report in Chromium: milliseconds from each thing that a person does until it
is seen.

Needs Chromium, chromedriver and selenium. One or two frames, of 16.7 ms each at 60 Hz, are in each
of the numbers; Chromium draws with the processor here.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time

from measure import scratch
from report import CASES, JUDGES, store
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from pytest_agent_eval.reports.html import make

BOUND = 200.0
"""Milliseconds of one step, the median."""
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
ROUNDS = 7

TIMED = """
const [change, done] = arguments;
const start = performance.now();
const heard = () => requestAnimationFrame(() => {
  document.body.offsetHeight;
  done(performance.now() - start);
});
if (change.startsWith('#')) {
  addEventListener('hashchange', heard, { once: true });
  location.replace(change);
} else {
  const grid = document.getElementById('grid');
  grid.scrollTop = change === 'top' ? 0 : grid.scrollTop + Number(change);
  requestAnimationFrame(heard);
}
"""

STEPS = {
    "filter by status": ("#view=cases&status=failed", "#view=cases"),
    "filter by judge": ("#view=cases&judge=judge_1%3Afailed", "#view=cases"),
    "sort by judge": ("#view=cases&sort=-judge%3Ascore_0", "#view=cases"),
    "sort by name": ("#view=cases&sort=-case", "#view=cases"),
    "search again": ("#view=cases&q=f3", "#view=cases&q=f3a"),
    "scroll a page": ("700", "700"),
    "scroll far": ("30000", "top"),
}


def main() -> int:
    """Measure; the exit status says whether each step keeps to its bound."""
    with scratch() as project, tempfile.TemporaryDirectory() as profile:
        path = project / "report.html"
        make(path).finished(store(project, CASES, JUDGES))
        options = Options()
        for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"):
            options.add_argument(flag)
        options.binary_location = shutil.which("chromium") or ""
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            return _measured(driver, path.as_uri())
        finally:
            driver.quit()


def _measured(driver: webdriver.Chrome, address: str) -> int:
    driver.get("about:blank")
    driver.get(f"{address}#view=cases")
    loaded = driver.execute_script(
        "const t = performance.getEntriesByType('navigation')[0];"
        "return t.domComplete - t.responseStart"
    )
    print(f"load: {loaded:.0f} ms until the table is shown")
    start = time.perf_counter()
    driver.execute_script("location.replace('#view=cases&q=f3a')")
    while "of" not in (text := _found(driver)) or "searching" in text:
        time.sleep(0.005)
    print(f"first search through all texts: {1000 * (time.perf_counter() - start):.0f} ms ({text})")
    good = True
    for name, changes in STEPS.items():
        driver.execute_script("location.replace('#view=cases')")
        times = [
            driver.execute_async_script(TIMED, change) for _ in range(ROUNDS) for change in changes
        ]
        middle, worst = statistics.median(times), max(times)
        good = good and middle < BOUND
        print(f"{name}: {middle:.0f} ms, at most {worst:.0f} ms (bound {BOUND:g} ms)")
    heap = driver.execute_script("return performance.memory.usedJSHeapSize") / 2**20
    print(f"memory: {heap:.0f} MiB; rows that are elements: {_rows(driver)} of {CASES}")
    return 0 if good else 1


def _found(driver: webdriver.Chrome) -> str:
    return str(driver.execute_script("return document.getElementById('found').textContent"))


def _rows(driver: webdriver.Chrome) -> int:
    return int(driver.execute_script("return document.querySelectorAll('.body .row').length"))


if __name__ == "__main__":
    sys.exit(main())
