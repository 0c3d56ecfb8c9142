"""Pictures of layouts, as text and as SVG."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from sbpjax._core.inspect.layout_picture import blocks_of, visualize
from sbpjax.sbp import Layout, placement

LINE = placement("cpu", [0, 1, 2, 3])
GRID = placement("cpu", [[0, 1], [2, 3]])


def layout(place, sbp, shape):
    return Layout(place, sbp, shape, np.float32)


def test_uneven_split():
    assert str(visualize(layout(LINE, "S0", (7, 4)))).splitlines() == [
        "float32[7, 4] as S0 on [0, 1, 2, 3]",
        "rank 0  [0:2, 0:4]",
        "rank 1  [2:4, 0:4]",
        "rank 2  [4:6, 0:4]",
        "rank 3  [6:7, 0:4]",
    ]


def test_empty_parts_and_summands():
    assert "rank 3  [] (empty)" in str(visualize(layout(LINE, "S0", (3,))))
    assert "rank 2  [0:2] summand 1,0" in str(visualize(layout(GRID, "P,P", (2,))))
    assert "rank 1  [] summand 1" in str(visualize(layout(LINE, "P", ())))


@pytest.mark.parametrize("sbp", ["S0,S1", "B,S0", "P,B", "S2,S0", "S1,S1", "B,B"])
def test_blocks_cover_every_summand_once(sbp):
    lay = layout(GRID, sbp, (3, 5, 4))
    count: dict = {}
    for block in blocks_of(lay):
        held = count.setdefault(block.summand, np.zeros(lay.shape, int))
        held[tuple(slice(a, b) for a, b in zip(block.start, block.stop, strict=True))] += 1
    assert all((held == 1).all() for held in count.values())
    assert sorted(r for b in blocks_of(lay) for r in b.ranks) == [0, 1, 2, 3]


@pytest.mark.parametrize(("sbp", "shape"), [("S0,S1", (4, 4)), ("S0,P", (5,)), ("B,S0", ()), ("S0,S2", (4, 2, 6))])
def test_the_svg_draws_every_block(sbp, shape):
    if not shape:
        sbp = "B,P"
    lay = layout(GRID, sbp, shape)
    picture = ElementTree.fromstring(visualize(lay).svg())
    drawn = picture.findall("{http://www.w3.org/2000/svg}rect")
    assert len(drawn) == len(blocks_of(lay))
    assert "svg" in visualize(lay)._repr_html_()
