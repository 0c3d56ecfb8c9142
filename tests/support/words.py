"""Vague words per 1,000 words of prose: docstrings and comments of code, text of pages.

Code, names in backticks and the argument names of ``Args:`` do not count. ``python -m tests.support.words`` prints
the figures, and with ``--lines`` every place.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    "what": {"what"},
    "tell": {"tell", "tells", "told", "say", "says", "said"},
    "lie": {"lie", "lies", "lay", "lying", "lain"},
    "ask": {"ask", "asks", "asked"},
}
CODE = re.compile(r"^ *```.*?^ *```|``.+?``|`.+?`|^ *>>>.*?$|^ *\.\.\. .*?$", re.MULTILINE | re.DOTALL)
ARGUMENT = re.compile(r"^ {4}\**\w+(, \**\w+)*:", re.MULTILINE)  # in a docstring without its indentation
DOCSTRING = re.compile(r'^ *r?"""(.*?)"""', re.MULTILINE | re.DOTALL)  # parsing a thousand files takes seconds
COMMENT = re.compile(r"(?:^ *|  )# (.*)$", re.MULTILINE)  # as ruff formats them
WORD = re.compile(r"[A-Za-z']+")


def prose_files() -> list[Path]:
    """Return the code and the pages whose words count."""
    code = [p for folder in ("sbpjax", "examples") for p in (ROOT / folder).rglob("*.py")]
    return sorted([*code, *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])


def prose_of(path: Path) -> Iterator[str]:
    """Yield the pieces of prose of a file, without code."""
    text = path.read_text()
    if path.suffix == ".md":
        yield CODE.sub(" ", text)
        return
    yield from (ARGUMENT.sub(" ", CODE.sub(" ", inspect.cleandoc(found))) for found in DOCSTRING.findall(text))
    yield from (CODE.sub(" ", comment) for comment in COMMENT.findall(text))


def rates() -> dict[str, float]:
    """Return the words of each group per 1,000 words."""
    words = Counter(w for path in prose_files() for text in prose_of(path) for w in WORD.findall(text.lower()))
    return {group: 1000 * sum(words[form] for form in forms) / words.total() for group, forms in GROUPS.items()}


if __name__ == "__main__":
    print({group: round(rate, 2) for group, rate in rates().items()})
    for path in prose_files() if "--lines" in sys.argv else ():
        for line in (line for text in prose_of(path) for line in text.splitlines()):
            if found := set(WORD.findall(line.lower())) & set.union(*GROUPS.values()):
                print(f"{path.relative_to(ROOT)}: {sorted(found)}: {line.strip()}")
