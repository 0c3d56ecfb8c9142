"""Check the built site: every link inside it has a target, and its search knows the words that readers look for.

``python docs/check_site.py build/docs`` prints what is wrong, and ends with status 1; ``make docs`` runs it.
"""

import json
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WORDS = ("to_global", "pipelin", "lora", "zero", "checkpoint")  # stems, as the index has them


class _Page(HTMLParser):
    """The targets and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        named = dict(attrs)
        self.targets.update(filter(None, (named.get("id"), named.get("name"))))
        self.links += filter(None, (named.get("href"), named.get("src")))


@cache
def read_page(file: Path) -> _Page:
    """Return a page's targets and links."""
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path) -> list[str]:
    """Return the links to files or anchors that do not exist, each with its page."""
    found = []
    for file in sorted(site.rglob("*.html")):
        for link in dict.fromkeys(read_page(file).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file():
                found.append(f"{file.relative_to(site)}: no file {link}")
            elif anchor and target.suffix == ".html" and anchor not in read_page(target).targets:
                found.append(f"{file.relative_to(site)}: no anchor {link}")
    return found


def unknown_words(site: Path) -> list[str]:
    """Return the words of `WORDS` that the search does not find."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?", text.strip(), re.DOTALL)[1])
    known = {*index["terms"], *index["titleterms"]}
    known |= {row[-1] if isinstance(row[-1], str) else "" for rows in index["objects"].values() for row in rows}
    joined = " ".join(known).lower()
    return [word for word in WORDS if word not in joined]


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    wrong = dead_links(folder) + [f"search does not find {word}" for word in unknown_words(folder)]
    print("\n".join(wrong) or f"{len(list(folder.rglob('*.html')))} pages, no dead link")
    sys.exit(bool(wrong))
