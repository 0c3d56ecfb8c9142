"""Report display in a terminal and a notebook: blocks of lines, tables and other reports.

    class Sums(DisplayedReport):
        def _blocks(self):
            yield "sums of a step", Table([("all-gather", "42.4 MB")], ("kind", "bytes"), right=(1,))

    >>> print(Sums())
    sums of a step
    kind          bytes
    all-gather  42.4 MB

Blocks are an empty line apart. A table's columns are as wide as their widest cell; in a notebook lines are paragraphs
and tables are HTML.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple


class Table(NamedTuple):
    """Rows of text.

    Attributes:
        rows: the cells, row by row.
        head: the names of the columns; none for a table without a head.
        right: the numbers of the columns that are aligned to the right.
        faint: the numbers of the rows that are grey in a notebook.
    """

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()
    right: Collection[int] = ()
    faint: Collection[int] = ()

    def __str__(self) -> str:
        rows = [self.head, *self.rows] if self.head else self.rows
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                c.rjust(w) if k in self.right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        head = f"<tr>{_cells(self.head, 'th')}</tr>" if self.head else ""
        body = (f"<tr{' class=b' * (k in self.faint)}>{_cells(row, 'td')}</tr>" for k, row in enumerate(self.rows))
        return f"<table>{head}{''.join(body)}</table>"


class DisplayedReport:
    """A report; a subclass yields its blocks, each a line, a table, a report, or a tuple of these."""

    def _blocks(self) -> Iterable[Any]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join("\n".join(map(str, _parts(block))) for block in self._blocks())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(as_html(part) for block in self._blocks() for part in _parts(block))


def as_html(part: Any) -> str:
    """Return text, a table or a report as HTML."""
    if not isinstance(part, str):
        return part._repr_html_()
    tag = "pre" if "\n" in part else "p"
    return f"<{tag}>{html.escape(part)}</{tag}>"


def whole_page(title: str, body: str) -> str:
    """Return an HTML page that needs no other file."""
    head = f"<meta charset='utf-8'><title>{html.escape(title)}</title>"
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>\n"


def svg(width: float, height: float, parts: Iterable[str], attributes: str = "", css: str = "") -> str:
    """Return drawn parts as one SVG picture, which shrinks to the width of its page."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    style = f'style="max-width:100%;height:auto;{css}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}{attributes}>{"".join(parts)}</svg>'


def bytes_text(count: float) -> str:
    """Return a number of bytes as people read it: ``"215.4 MB"``, in powers of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.95 or unit == "GB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def microseconds(us: float) -> str:
    """Return a time as people read it."""
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.1f} µs" if us >= 10 or not us else f"{us:.3g} µs"


def _cells(row: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{_indent_cell(html.escape(cell))}</{tag}>" for cell in row)


def _indent_cell(cell: str) -> str:
    """Return a cell whose leading spaces a browser keeps."""
    text = cell.lstrip(" ")
    return "&nbsp;" * (len(cell) - len(text)) + text


def _parts(block: Any) -> Sequence[Any]:
    return block if isinstance(block, tuple) and not isinstance(block, Table) else (block,)
