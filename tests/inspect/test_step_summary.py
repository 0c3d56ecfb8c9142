"""The summary of a step by purpose: purposes, folded names, remarks, and its size."""

import json

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.inspect.auto.usual_traffic import UsualTraffic
from sbpjax.graph import TensorSpec
from tests.inspect.test_html import Balanced
from tests.support.browser import inspect_page

S0, S1, B, P = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum
WIDTH = 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Megatron(Block):
    """The block with Megatron's layout forced on the second axis."""

    def forward(self, x):
        y = x.to_global(sbp=[S0, B], grad_sbp=[S0, P])
        y = nn.functional.gelu(self.up(y).to_global(sbp=[S0, S1])).to_global(sbp=[S0, S1])
        return x + self.down(y).to_global(sbp=[S0, P]).to_global(sbp=[S0, B])


class Gathering(Block):
    """The block with a gathered weight forced."""

    def forward(self, x):
        up = self.up.weight.to_global(sbp=[B, B])
        return x + self.down(nn.functional.gelu(nn.functional.linear(self.norm(x), up)))


class Rows(Block):
    """The block with rows that stay split."""

    def forward(self, x):
        y = self.up(self.norm(x)).to_global(sbp=S0, grad_sbp=S0)
        return x + self.down(nn.functional.gelu(y)).to_global(sbp=S0, grad_sbp=S0)


class Net(nn.Module):
    def __init__(self, layers, block=Block):
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Train(nn.Graph):
    def __init__(self, model, micro=1, stage=0):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))
        self.config.set_gradient_accumulation_steps(micro)
        if stage:
            self.config.enable_zero(True, stage=stage, shard_min_size=1)

    def build(self, x):
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


def two_axes(layers=3, rows=4096, block=Block, **options):
    place = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    model = Net(layers, block).to_global(place, [B, B])
    for one in model.blocks:
        one.up.to_global(sbp=[B, S0])
        one.down.to_global(sbp=[B, S1])
    return Train(model, **options), TensorSpec((rows, WIDTH), placement=place, sbp=[S0, B])


def purposes(report):
    return {p.name: p for p in report.by_purpose()}


@pytest.mark.parametrize("layers", [3, 6])
def test_summary_fits_25_lines_of_110_columns(layers):
    graph, spec = two_axes(layers)
    lines = str(graph.explain(spec, check=False)).splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 110
    assert lines[0] == f"{graph.name} on 2 × 4 ranks (a0: 2 ranks split batch; a1: 4 ranks split weights)"
    assert any(f"blocks.0–{layers - 1}.up.weight" in line for line in lines)
    assert not any("dot_general" in line or "(none)" in line for line in lines)


def test_purposes_add_up_to_the_plan():
    graph, spec = two_axes()
    report = graph.explain(spec)
    found = report.by_purpose()
    assert sum(p.bytes for p in found) == graph.program.plan.bytes > 0
    assert [p.bytes for p in found] == sorted((p.bytes for p in found), reverse=True)
    assert [p.name for p in found] == ["gradients of weights", "weights gathered"]
    assert 0 < sum(p.us for p in found) < report.time_us
    assert all(sum(p.places.values()) == p.bytes for p in found)
    assert "Compiled: +0.0 %" in str(report)


def test_reason_for_other_compiled_bytes_is_in_the_title():
    graph, spec = two_axes(layers=1)
    graph.config.enable_amp(True, dtype=flow.bfloat16)
    report = graph.explain(spec)
    difference = report.traffic.difference()
    assert difference > 0.1
    title = " ".join(line.strip() for line in str(report).split("\n\n")[0].splitlines())
    reason = "XLA sends 16-bit floats as float32 on CPUs; GPUs and TPUs send the planned dtypes"
    assert title.endswith(f"Compiled: {100 * difference:+.1f} % bytes ({reason}).")


def test_gradients_and_updates_have_the_names_of_weights():
    graph, spec = two_axes(stage=1)
    found = purposes(graph.explain(spec, check=False))
    weights = {name for name, _ in graph.model.to(nn.Module).named_parameters(prefix="model")}
    for purpose in ("gradients of weights", "updated weights"):
        assert set(found[purpose].places) <= {f"model.blocks.0–2.{w}" for w in names_in_a_block(weights)}


def names_in_a_block(weights):
    return {name.split(".", 3)[3] for name in weights}


def test_gathered_weights_are_remarked_with_the_bytes_of_megatron():
    graph, spec = two_axes()
    report = graph.explain(spec, check=False)
    assert purposes(report)["weights gathered"].places
    (remark,) = (text for text in report.to_dict()["remarks"] if "stored split over a1" in text)
    assert "6 weights (blocks.0–2.down.weight, …)" in remark and "Megatron-LM does, would send" in remark


def test_rows_that_are_gathered_are_remarked():
    graph, spec = two_axes(rows=16)
    report = graph.explain(spec, check=False)
    assert purposes(report)["inputs"].bytes == 16 // 2 * WIDTH * 4
    assert "Arguments are split over a0, but gathered for use: 1.0 kB." in str(report)


def test_megatron_estimate_equals_the_plan_with_its_layout_forced():
    graph, spec = two_axes(block=Megatron, rows=64)
    report = graph.explain(spec, check=False)
    found = purposes(report)
    sent = 64 // 2 * WIDTH * 4 * 2 * 3 // 4  # an all-reduce among four ranks
    assert found["tensor parallelism"].bytes == sent * (3 + 2)  # the first block's input has no gradient
    usual = UsualTraffic(report.problem)
    assert usual.activations() == sent * (3 + 2)
    assert abs(usual.megatron - report.bytes) < 0.02 * report.bytes  # the plan leaves gradients of norms as summands


def test_growth_of_tensor_parallelism_ends_where_the_plan_gathers_weights():
    few, many = (two_axes(rows=rows)[0].explain(two_axes(rows=rows)[1], check=False) for rows in (64, 4096))
    assert next(iter(purposes(few))) == "tensor parallelism" and "tensor parallelism" not in purposes(many)
    growth = "it grows with the rows of a rank, until gathering the weights takes less time."
    assert few.to_dict()["remarks"][-1] == f"The largest share is for tensor parallelism; {growth}"


def test_more_bytes_than_megatron_have_a_reason():
    place = flow.placement.all("cpu")
    model = Net(1, Rows).to_global(place, B)
    spec = TensorSpec((64, WIDTH), placement=place, sbp=S0)
    data = Train(model).explain(spec, check=False)
    graph, spec = two_axes(rows=8, block=Gathering)
    forced = graph.explain(spec, check=False)
    for report, reason in (
        (data, "Megatron-LM splits weights, which here are stored whole."),
        (forced, "The plan minimises modelled time, computing included, and not bytes. On several axes"),
    ):
        (remark,) = (text for text in report.to_dict()["remarks"] if "Megatron-LM (" in text)
        assert report.bytes > 1.02 * UsualTraffic(report.problem).megatron and reason in remark
    graph, spec = two_axes(block=Megatron, rows=64)
    (remark,) = (text for text in graph.explain(spec, check=False).to_dict()["remarks"] if "Megatron-LM (" in text)
    assert remark.endswith("B.")


def test_fsdp_estimate_is_two_gathers_and_a_scatter():
    graph, spec = two_axes()
    weights = sum(p.numel() * 4 for p in graph.model.to(nn.Module).parameters())
    assert UsualTraffic(graph.explain(spec, check=False).problem).fsdp == 3 * weights * 7 // 8


def test_dict_is_json_and_page_needs_no_other_file():
    graph, spec = two_axes()
    report = graph.explain(spec, check=False)
    found = json.loads(json.dumps(report.to_dict()))
    assert found["bytes"] == report.bytes == sum(move["bytes"] for move in found["conversions"])
    assert found["ranks"] == [2, 4] and found["axes"][1] == {"size": 4, "divides": ["weights"]}
    page = report.to_html()
    body = page.partition("<body>")[2].partition("</body>")[0]
    assert len(page) < 500_000 and Balanced(body).folds >= 6
    for word in ("Time line", "weights and state per device", "model.blocks.", "gradients of weights", "<svg"):
        assert word in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.slow
def test_browser_opens_layers_and_draws_the_time_line(tmp_path):
    graph, spec = two_axes()
    report = graph.explain(spec, check=False)
    found = inspect_page(report.to_html(), tmp_path)
    assert found["loaded"] == 0 and found["pictures"] == 1 and found["bars"] > 10
    assert found["folds"] >= 6 and found["tables_of_open_folds"] > found["tables"] >= 2
    assert "all-gather" in found["text"] and "of weights and state per device" in found["text"]
