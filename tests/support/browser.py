"""Pages in headless Chromium, without a network: the document after its layout, and figures of what is visible.

A test that uses it is skipped where no Chromium is installed (Debian's package `chromium`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Opens every fold by a click, as a reader does, and counts what has an area. Resources are files that the page loaded.
_PROBE = """
const area = (e) => e.getBoundingClientRect().width * e.getBoundingClientRect().height;
const shown = (kind) => [...document.querySelectorAll(kind)].filter((e) => e.checkVisibility() && area(e) > 0).length;
const before = shown("table");
for (const fold of document.querySelectorAll("summary")) fold.parentElement.open || fold.click();
document.body.dataset.found = JSON.stringify({
  tables: before, tables_of_open_folds: shown("table"), folds: document.querySelectorAll("details[open]").length,
  pictures: shown("svg"), bars: shown("rect"), lines: document.querySelectorAll("polyline").length,
  wide: document.documentElement.scrollWidth > window.innerWidth,
  loaded: performance.getEntriesByType("resource").length,
  text: document.body.innerText,
});
"""


def inspect_page(page: str, folder: Path, width: int = 1200) -> dict:
    """Return figures of a page as a browser shows it.

    Args:
        page: HTML.
        folder: an empty folder for the browser's files.
        width: of the window, in pixels.

    Returns:
        ``tables`` at first, ``tables_of_open_folds``, ``folds``, ``pictures``, ``bars``, ``lines``, ``loaded`` files,
        ``text``, and whether the page is ``wide``: it scrolls sideways.
    """
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{_PROBE}</script></body>"), encoding="utf-8")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'data-found="([^"]*)"', done.stdout)
    assert found, done.stdout[-2000:]
    return json.loads(unescape(found[1]))
