"""Rows of equal layers as one row: which are folded, which are not, and that no count is lost."""

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.inspect.equal_layers import LoopedLayers, fold_layers
from sbpjax.graph import TensorSpec

FORWARD = [(f"m.{i}.{part}", part) for i in range(1, 4) for part in ("norm", "mlp")]


@pytest.mark.parametrize(
    "rows, found",
    [
        ([], []),
        ([("", "x"), ("", "x")], [("", "x", 2)]),  # nothing tells them apart
        (FORWARD, [("m.1–3.norm", "norm", 3), ("m.1–3.mlp", "mlp", 3)]),
        (FORWARD[::-1], [("m.1–3.mlp", "mlp", 3), ("m.1–3.norm", "norm", 3)]),
        ([("m.0.mlp", "mlp"), *FORWARD], [("m.0–3.mlp", "mlp", 4), ("m.1–3.norm", "norm", 3)]),
        ([("m.1", "a"), ("m.2", "b")], [("m.1", "a", 1), ("m.2", "b", 1)]),
        ([("m.1", "a"), ("m.3", "a")], [("m.1,3", "a", 2)]),  # 2 moves nothing
        ([("m.1", "a"), ("n.2", "a")], [("m.1", "a", 1), ("n.2", "a", 1)]),
        ([("m.1", "a"), ("end", "b"), ("m.2", "a")], [("m.1–2", "a", 2), ("end", "b", 1)]),
        ([("m.1", "a"), ("m.2", "a"), ("m.1", "a")], [("m.1–2", "a", 3)]),  # there, and back
        (
            [(f"m.{i}.block.{k}.mlp", "a") for i in range(2) for k in range(3 + i)],
            [("m.0.block.0–2.mlp", "a", 3), ("m.1.block.0–3.mlp", "a", 4)],
        ),
        ([("x.1 y.1.w", "a"), ("x.2 y.2.w", "a")], [("x.1–2 y.1–2.w", "a", 2)]),  # a module and its weight
        ([(f"m.{i}.block.{k}", "a") for i in range(2) for k in range(3)], [("m.0–1.block.0–2", "a", 6)]),
    ],
)
def test_folded(rows, found):
    assert fold_layers(rows) == found
    assert sum(times for *_, times in found) == len(rows)


def test_a_step_of_many_layers_is_told_in_few_rows():
    place = flow.placement("cpu", [0, 1])

    class Train(nn.Graph):
        def __init__(self, layers):
            super().__init__()
            self.model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(layers))).to_global(place, flow.sbp.broadcast)
            self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    x = TensorSpec((512, 8), placement=place, sbp=["S0"])
    few, many = (Train(layers).explain(x, check=False, level=2) for layers in (4, 9))  # from 10 on a loop
    assert sum(move.bytes > 0 for move in many.moves) == 18  # a weight and a bias each
    assert len(str(few).splitlines()) == len(str(many).splitlines())
    (row,) = (line for line in str(many).splitlines() if line.endswith("gradient of model.0–8.weight"))
    sent = sum(move.bytes for move in many.moves if move.value.endswith("weight"))
    assert sent == 9 * 8 * 8 * 4 and f" {sent:,}      9  " in row


def test_looped_layers_have_one_name():
    looped = LoopedLayers({"m.blocks.*.up.w": [f"m.blocks.{i}.up.w" for i in range(3)], "m.w": ["m.w"]})
    assert looped.name("m.blocks.0.up") == looped.name("m.blocks.*.up") == looped.name("m.blocks.0–2.up")
    assert looped.name("gradient of m.blocks.2.up.w") == "gradient of m.blocks.0–2.up.w"
    assert looped.paths("m.blocks.0–2.up") == ["m.blocks.0.up", "m.blocks.1.up", "m.blocks.2.up"]
    assert [looped.name(name) for name in ("", "m.w", "m.head.1", "m.blocks.7.up")] == [
        "",
        "m.w",
        "m.head.1",
        "m.blocks.7.up",
    ]


def test_names_with_stars_are_kept():
    assert fold_layers([("m.*.w", "a"), ("m.*.1", "b"), ("m.*.2", "b")]) == [("m.*.w", "a", 1), ("m.*.1–2", "b", 2)]


def test_layers_that_run_as_a_loop_have_one_name_in_the_summary():
    place = flow.placement("cpu", [[0, 1], [2, 3]])

    class Train(nn.Graph):
        def __init__(self, layers):
            super().__init__()
            blocks = (nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(layers))
            self.model = nn.Sequential(*blocks).to_global(place, (flow.sbp.broadcast, flow.sbp.split(0)))
            self.add_optimizer(flow.optim.AdamW(self.model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    x = TensorSpec((4096, 8), placement=place, sbp=["S0", "B"])
    report = Train(12).explain(x, check=False)
    assert report.plan.bodies
    purposes = {purpose.name: purpose.places for purpose in report.by_purpose()}
    assert "model.0–11.0,2.weight" in purposes["gradients of weights"]
    assert "outside modules" not in purposes["gradients of weights"]
    assert "stored split over a1" in str(report) and "*" not in str(report)
    page = report.to_html()
    assert "gradient of model.0–11.2.weight" in page  # equal layers are one fold
