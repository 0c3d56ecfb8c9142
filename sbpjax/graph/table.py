"""Tables as text, whose columns are as wide as their widest cell, and as HTML; times as people read them."""

from __future__ import annotations

import html
from collections.abc import Sequence


def aligned(rows: list[tuple[str, ...]], right: Sequence[int]) -> str:
    """Return rows as lines; the columns of the numbers in `right` are aligned to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            c.rjust(w) if k in right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def html_table(head: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    """Return a table as HTML."""
    cells = "".join(f"<th>{html.escape(c)}</th>" for c in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"


def microseconds(us: float) -> str:
    """Return a time as people read it."""
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.1f} µs" if us >= 10 or not us else f"{us:.3g} µs"
