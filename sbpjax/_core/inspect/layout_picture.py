"""Pictures of layouts: the block of a tensor on each rank.

    f32[7, 4] as S0 on [0, 1, 2, 3]
    rank 0  [0:2, 0:4]
    rank 1  [2:4, 0:4]
    rank 2  [4:6, 0:4]
    rank 3  [6:7, 0:4]

The text names the parts of any number of dims. The picture, an SVG in a notebook, shows the last two dims as a grid
and every block with the ranks that hold it; dims before them are named in the block's label. A partial sum is drawn
once per summand.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.sbp import algebra
from sbpjax.sbp.algebra import P
from sbpjax.sbp.layout import Layout

from .display import svg

_COLOURS = ("#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#1f78b4", "#33a02c")
_WIDTH, _HEIGHT = 320, 200


@dataclass(frozen=True)
class Block:
    """A part of a tensor and who holds it.

    Attributes:
        start: the first index along each logical dim.
        stop: one past the last.
        summand: the index on each partial axis; empty without P.
        ranks: who holds it.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    summand: tuple[int, ...]
    ranks: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return any(a >= b for a, b in zip(self.start, self.stop, strict=True))

    def __str__(self) -> str:
        part = "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.stop, strict=True)) + "]"
        part = "[] (empty)" if self.is_empty else part
        return part + (f" summand {','.join(map(str, self.summand))}" if self.summand else "")


def blocks_of(layout: Layout) -> list[Block]:
    """Return the distinct blocks of a layout, each with the ranks that hold it, in order of first rank."""
    ranks_of: dict = {}
    for index, part in zip(np.ndindex(*layout.placement.hierarchy), layout.parts(), strict=True):
        summand = tuple(i for i, code in zip(index, layout.codes, strict=True) if code == P)
        start = tuple(o for o, _ in part)
        stop = tuple(o + c for o, c in part)
        ranks_of.setdefault((start, stop, summand), []).append(int(layout.placement.ranks[index]))
    return [Block(start, stop, summand, tuple(ranks)) for (start, stop, summand), ranks in ranks_of.items()]


@dataclass(frozen=True)
class Picture:
    """A layout, drawn: ``print`` it in a terminal, show it in a notebook."""

    layout: Layout

    def __str__(self) -> str:
        lay = self.layout
        rank_blocks = sorted(((r, b) for b in blocks_of(lay) for r in b.ranks), key=lambda pair: pair[0])
        width = max(len(str(rank)) for rank, _ in rank_blocks)
        lines = [f"{lay.dtype}{list(lay.shape)} as {algebra.nd_name(lay.codes)} on {ranks_text(lay.placement.ranks)}"]
        lines += [f"rank {rank:>{width}}  {block}" for rank, block in rank_blocks]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self).splitlines()[0])}</pre>{self.svg()}"

    def svg(self) -> str:
        """Return the picture as SVG text: one panel per summand and per part of the leading dims."""
        panels: dict = {}
        for block in blocks_of(self.layout):
            if not block.is_empty or not self.layout.shape:
                key = (block.summand, block.start[:-2], block.stop[:-2])
                panels.setdefault(key, []).append(block)
        rows, columns = (1, 1, *self.layout.shape)[-2:]
        drawn = []
        for k, ((summand, start, stop), blocks) in enumerate(panels.items()):
            title = [f"summand {','.join(map(str, summand))}"] if summand else []
            title += [f"[{', '.join(f'{a}:{b}' for a, b in zip(start, stop, strict=True))}, …]"] if start else []
            drawn.append(_panel(10 + k * (_WIDTH + 30), " ".join(title), blocks, (rows, columns)))
        width = 10 + len(panels) * (_WIDTH + 30)
        return svg(width, _HEIGHT + 40, drawn, ' font-family="sans-serif"', "background: white;")


def _panel(left: int, title: str, blocks: list[Block], shape: tuple[int, int]) -> str:
    parts = [f'<text x="{left}" y="16" font-size="12">{html.escape(title)}</text>']
    rows, columns = max(shape[0], 1), max(shape[1], 1)
    for k, block in enumerate(blocks):
        (r0, c0), (r1, c1) = (((0, 0) + block.start)[-2:], ((1, 1) + block.stop)[-2:])
        x, y = left + _WIDTH * c0 / columns, 24 + _HEIGHT * r0 / rows
        w, h = _WIDTH * (c1 - c0) / columns, _HEIGHT * (r1 - r0) / rows
        label = "ranks " * (len(block.ranks) > 1) + ", ".join(map(str, block.ranks))
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{_COLOURS[k % len(_COLOURS)]}" '
            f'stroke="black"/><text x="{x + w / 2:.1f}" y="{y + h / 2:.1f}" font-size="12" text-anchor="middle" '
            f'dominant-baseline="middle">{label}</text>'
        )
    return "".join(parts)


def visualize(x) -> Picture:
    """Return a picture of which part of a global tensor each rank holds.

    Args:
        x: a `Layout`, or anything with a ``layout`` (a global tensor).

    Example:
        >>> print(visualize(Layout(placement("cpu", [0, 1]), "S0", (3, 2), "float32")))
        float32[3, 2] as S0 on [0, 1]
        rank 0  [0:2, 0:2]
        rank 1  [2:3, 0:2]
    """
    return Picture(x if isinstance(x, Layout) else x.layout)
