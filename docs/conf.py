"""Sphinx's configuration: `make docs` builds the site from these pages and the docstrings; warnings are errors.

The pages are written for readers of the repository too, so they have no directives. Sphinx's own needs are added
while they are read: the links of an index page are its table of contents, and a link to a file outside `docs/` becomes
the file's name.
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import api_reference  # noqa: E402  # found by the path above

from sbpjax._core.naming import VERSION  # noqa: E402

project = "sbpjax"
release = version = VERSION
author = copyright = "sbpjax developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["pictures/*.py"]
html_theme = "furo"
html_title = f"sbpjax {VERSION}"
html_static_path = ["style"]
html_css_files = ["site.css"]

myst_heading_anchors = 4  # links name headings as GitHub does
autodoc_member_order = "alphabetical"
autodoc_typehints = "signature"
default_role = "code"  # single backquotes in docstrings are code
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_rtype = False
napoleon_use_ivar = True  # the fields of dataclasses are members too
python_display_short_literal_types = True
# Annotations name classes in short; where several have that name, the text stays without a link.
suppress_warnings = ["ref.python"]

API = "api/index"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def contents(page: str, text: str) -> list[str]:
    """Return the links of an index page, in order: its table of contents."""
    found = re.findall(r"^\| \[[^\]]*\]\(([\w/]+)\.md\) \|", text, flags=re.MULTILINE)
    return [*found, API] if page == root_doc else found


def inside(page: str, text: str) -> str:
    """Return a page whose links stay within `docs/`: others become the name of the file in the repository."""

    def kept(match):
        picture, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target) or picture:
            return match[0]
        file = (HERE / page).parent / target.partition("#")[0]
        if file.resolve().is_relative_to(HERE):
            return match[0]
        name = file.resolve().relative_to(HERE.parent).as_posix()
        return f"{words} (`{name}` in the repository)"

    return LINK.sub(kept, text)


def read(app, page: str, source: list[str]) -> None:
    """Prepare a page for Sphinx."""
    if (HERE / f"{page}.md").exists():
        text = inside(page, source[0])
        text = re.sub(r"(```python\n.*?)\n+```", r"\1\n```", text, flags=re.DOTALL)  # sessions end with an empty line
        if page == root_doc or page.endswith("/index"):
            rows = "\n".join(contents(page, text))
            text += f"\n```{{toctree}}\n:hidden:\n\n{rows}\n```\n"
        source[0] = text


def absolute_values(app, what: str, name: str, value, options, lines: list[str]) -> None:
    """Keep ``|x|`` of formulas in docstrings from being read as a substitution."""
    lines[:] = [line if ">>>" in line else re.sub(r"\|(\S|\S[^|`]*\S)\|", r"\|\1\|", line) for line in lines]


def without_repetition(app, what: str, name: str, value, skip: bool, options) -> bool | None:
    """Leave out a layer's ``forward`` without a docstring of its own."""
    return True if name == "forward" and not getattr(value, "__doc__", None) else None


def setup(app) -> None:
    """Connect the above."""
    api_reference.write(HERE / "api")
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", absolute_values)
    app.connect("autodoc-skip-member", without_repetition)
