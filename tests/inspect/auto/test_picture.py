"""Pictures: well-formed, and of the plan's own figures."""

import xml.etree.ElementTree as ElementTree

from sbpjax._core.inspect.auto.picture import bars, boxes_and_lines, graph, page
from tests.graph.auto.cases import reported
from tests.inspect.auto.test_graph_views import trained

_SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_figures():
    totals = reported("mlp").totals
    drawn = ElementTree.fromstring(bars(totals))
    rects = [float(r.get("width")) for r in drawn.iter(f"{_SVG}rect")][:-2]  # the legend has two
    pairs = [sum(rects[k : k + 2]) for k in range(0, len(rects), 2)]
    most = max(t.time_us for t in totals)
    for t, length in zip(totals, pairs[: len(totals)], strict=True):
        assert abs(length - 150 * t.time_us / most) < 0.2
    texts = [t.text for t in drawn.iter(f"{_SVG}text")]
    assert all(t.name in texts for t in totals)


def test_the_graph_has_a_box_per_module_and_a_line_per_activation():
    made = trained().auto_parallel_report(against=[])
    boxes, lines = boxes_and_lines(made)
    names = [b.name for b in boxes]
    assert names == ["model.*.up", "model.*.act", "model.*.down", "model.*"]
    assert [b.count for b in boxes] == [2, 2, 2, 2]
    assert [[c.name.rpartition(".")[2] for c in b.chips] for b in boxes[:3]] == [
        ["weight", "bias"],
        [],
        ["weight", "bias"],
    ]
    ends = {(x.source, x.target) for x in lines}
    assert {("model.*.up", "model.*.act"), ("model.*.act", "model.*.down"), ("model.*.down", "model.*")} <= ends
    moved = {b.bytes for b in made.plan.boxings}
    assert all(x.bytes in moved for x in lines if x.bytes)
    drawn = ElementTree.fromstring(graph(made))
    texts = [t.text for t in drawn.iter(f"{_SVG}text")]
    assert "model.*.up × 2" in texts and "weight [256, 8]" in texts


def test_the_page_stands_alone():
    text = page(reported("mlp"), whole=True)
    assert text.startswith("<!doctype html>") and "<script" not in text and "src=" not in text
    assert text.count("<svg") >= 1 and "tensor parallel" in text
    assert "<html" not in reported("mlp")._repr_html_()
