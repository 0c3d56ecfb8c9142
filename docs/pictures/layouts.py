"""Draw `layouts.svg`: one logical matrix, and the parts of it on four devices under each sbp.

``python docs/pictures/layouts.py`` writes it. It needs nothing but Python.
"""

from pathlib import Path

PICTURE = Path(__file__).with_suffix(".svg")
ROWS, COLUMNS, CELL = 4, 4, 15
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2")  # one for each row of the logical matrix
FONT = 'font-family="sans-serif" fill="#222222"'


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "middle", more: str = "") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" {FONT}{more}>{words}</text>'


def matrix(x: float, y: float, rows: range, columns: range, summand: bool = False) -> str:
    """Return the cells of a part of the logical matrix at the place that they have in it; the rest as an outline."""
    side = CELL * COLUMNS
    found = [f'<rect x="{x:g}" y="{y:g}" width="{side}" height="{side}" fill="none" stroke="#cccccc"/>']
    for row in rows:
        for column in columns:
            shade = (0.25 if summand else 1.0) * (0.55 + 0.15 * column)
            found.append(
                f'<rect x="{x + CELL * column:g}" y="{y + CELL * row:g}" width="{CELL}" height="{CELL}" '
                f'fill="{COLOURS[row]}" fill-opacity="{shade:.2f}" stroke="#ffffff"/>'
            )
    return "\n".join(found)


def picture() -> str:
    """Return the picture as SVG."""
    whole, across = range(ROWS), range(COLUMNS)
    lines = [
        ("split(0)", "rows", [(range(rank, rank + 1), across) for rank in range(4)]),
        ("split(1)", "columns", [(whole, range(rank, rank + 1)) for rank in range(4)]),
        ("broadcast", "a copy each", [(whole, across)] * 4),
        ("partial_sum", "summands: of the tensor", [(whole, across)] * 4),
    ]
    width, step, left = 720, 100, 350
    height = 60 + step * len(lines)
    middle = 50 + step * len(lines) / 2
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(75, middle - 50, "logical tensor"),
        matrix(45, middle - 35, whole, across),
        text(75, middle + 45, "shape (4, 4)", 11),
    ]
    found += [text(left + 30 + 90 * rank, 28, f"device {rank}") for rank in range(4)]
    for i, (name, meaning, parts) in enumerate(lines):
        y = 50 + step * i
        ahead = f"M 120 {middle:g} C 160 {middle:g} 150 {y + 30:g} 185 {y + 30:g}"
        found.append(f'<path d="{ahead}" fill="none" stroke="#999999"/>')
        found.append(text(192, y + 28, name, 14, "start", ' font-weight="bold"'))
        words = meaning.split(": ")
        found += [text(192, y + 45 + 14 * k, part, 11, "start") for k, part in enumerate(words)]
        for rank, (rows, columns) in enumerate(parts):
            found.append(matrix(left + 90 * rank, y, rows, columns, name == "partial_sum"))
            if name == "partial_sum" and rank:
                found.append(text(left + 90 * rank - 15, y + 35, "+", 16))
    return "\n".join([*found, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
