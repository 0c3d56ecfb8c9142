"""Exported graphs: written as files, and run by another process that cannot import the model."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import safe_open

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tracing import tree
from sbpjax.errors import ExportError, GraphTypeError, OpError, StateDictError
from sbpjax.graph import TensorSpec
from tests.support import graphs
from tests.support.graphs import Plain

F = nn.functional
FILES = {"manifest.json", "program.jax_export", "weights.safetensors"}
OTHER_FORMS = {"program.mlir", "program.mlirbc", "program.hlo.pb"}
SUMS_IN_OTHER_ORDER = {"rtol": 1e-5, "atol": 1e-6}
# Programs of every kind, random ones too, are exported as they are.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*a model in training mode:UserWarning")

Out = namedtuple("Out", ["loss", "extra"])


@dataclasses.dataclass
class Batch:
    x: object
    name: str = "b"


class Train(graphs.Train):
    loss = staticmethod(lambda model, x: (model(x) ** 2).mean())

    def build(self, x):
        return super().build(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):  # (B, T, 8)
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 2, 12).transpose(1, 2).chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), Attention()

    def forward(self, x):
        return x + self.attention(self.norm(x))


def mlp(width=8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 4))


def layers(g, x):
    for block in g.blocks:
        x = block(x)
    return x


def deep():
    graph = Plain(layers, blocks=nn.ModuleList([Block() for _ in range(4)]))
    graph.config.enable_block_scan(True)
    return graph


def train_deep():
    blocks = nn.Sequential(*[Block() for _ in range(4)])
    graph = Train(blocks, flow.optim.SGD(blocks.parameters(), lr=0.1, momentum=0.9))
    graph.config.enable_block_scan(True)
    return graph


def dropped():
    return Plain(lambda g, x: g.model(x) + flow.rand(8, 4), model=nn.Sequential(mlp(), nn.Dropout(0.5)))


def adam(micro=1):
    model = mlp()
    return Train(model, flow.optim.Adam(model.parameters(), lr=0.01), accumulate=micro)


def conditional(g, x):
    return flow.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)


FAMILIES = {
    "elementwise": (lambda: Plain(lambda g, x: (x.exp().tanh() + x.abs().sqrt()).clamp(-1, 1) ** 3), (8, 4)),
    "reduce": (lambda: Plain(lambda g, x: (x.sum(0), x.max(1)[0], x.argmax(1), x.var(), x.cumsum(1))), (8, 4)),
    "matmul": (lambda: Plain(lambda g, x: g.model(x), model=mlp()), (8, 4)),
    "linalg": (lambda: Plain(lambda g, x: flow.linalg.norm(x @ x.T, dim=1)), (8, 4)),
    "conv": (lambda: Plain(lambda g, x: F.max_pool2d(g.model(x), 2), model=nn.Conv2d(3, 4, 3)), (2, 3, 8, 8)),
    "norm": (
        lambda: Plain(lambda g, x: g.model(x), model=nn.Sequential(nn.BatchNorm1d(4), nn.LayerNorm(4))),
        (8, 4),
    ),
    "attention": (lambda: Plain(lambda g, x: g.model(x), model=Attention()), (2, 6, 8)),
    "embedding": (lambda: Plain(lambda g, x: g.model(x.abs().long() % 10), model=nn.Embedding(10, 4)), (8, 4)),
    "indexing": (lambda: Plain(lambda g, x: (x[1:5:2, None], x[x.argmax(0)], x.gather(1, x.argsort(1)))), (8, 4)),
    "random": (dropped, (8, 4)),
    "control flow": (lambda: Plain(conditional), (8, 4)),
    "scan": (lambda: adam(micro=4), (8, 4)),
    "stacks": (deep, (2, 6, 8)),
    "training": (adam, (8, 4)),
    "training stacks": (train_deep, (2, 6, 8)),
}

_RUN = """
import json, sys
import numpy as np
import sbpjax as flow
from sbpjax._core.tracing import tree

folder, calls = sys.argv[1], 3
for name in json.loads(sys.argv[2]):
    graph = flow.load_graph(f"{folder}/{name}")
    inputs = np.load(f"{folder}/{name}.npz")
    args = [flow.tensor(inputs[k]) for k in inputs.files]
    if graph.placement is not None:
        sbps = [leaf["sbp"] for leaf in graph.manifest["inputs"]["leaves"]]
        args = [a.to_global(graph.placement, sbp) for a, sbp in zip(args, sbps)]
    flow.manual_seed(7)
    outs = [x.numpy() for _ in range(calls) for x in tree.flatten(graph(*args))[0]]
    state = {f"state {k}": v.numpy() for k, v in graph.state_dict().items()}
    np.savez(f"{folder}/{name}.out.npz", **{f"out {i}": x for i, x in enumerate(outs)}, **state)
assert not any(m.startswith("tests") or m == "test_export" for m in sys.modules)
"""


def elsewhere(folder, names, devices=8):
    """Run exported graphs three times each in a process that knows sbpjax alone, and return what they gave."""
    root = str(Path(flow.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": root, "SBPJAX_CPU_DEVICES": str(devices)}
    command = [sys.executable, "-c", _RUN, str(folder), json.dumps(names)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: dict(np.load(f"{folder}/{name}.out.npz")) for name in names}


def here(graph, args):
    """Return what three calls of a graph give, and its state after them."""
    flow.manual_seed(7)
    outs = [x.numpy() for _ in range(3) for x in tree.flatten(graph(*args))[0]]
    found = {f"out {i}": x for i, x in enumerate(outs)}
    state = graph._g.last.state
    return {**found, **{f"state {n}": t.numpy() for n, t in zip(state.names, state.tensors, strict=True)}}


def kept(folder, name, graph, args, **options):
    graph.export(folder / name, *args, **options)
    np.savez(folder / f"{name}.npz", *[a.numpy() for a in args])


@pytest.fixture(scope="module")
def round_trips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    expected = {}
    for name, (make, shape) in FAMILIES.items():
        flow.manual_seed(1)
        graph, x = make(), flow.randn(*shape)
        if name in ("random", "stacks"):
            graph.export(folder / name, TensorSpec(shape))  # abstract arguments do
            np.savez(folder / f"{name}.npz", x.numpy())
        else:
            kept(folder, name, graph, (x,))
        expected[name] = here(graph, (x,))
    return expected, elsewhere(folder, list(FAMILIES), devices=2)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_op_family_comes_back(round_trips, name):
    expected, found = (side[name] for side in round_trips)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        assert value.dtype == found[key].dtype, key
        np.testing.assert_allclose(found[key], value, err_msg=key, **SUMS_IN_OTHER_ORDER)
    assert not name.startswith("training") or expected["out 0"] != expected["out 2"]


# -- sharded -----------------------------------------------------------------------------------------------------------

GRIDS = {"data": ([0, 1, 2, 3], ["S0"], ["B"]), "grid": ([[0, 1], [2, 3]], ["S0", "B"], ["B", "S0"])}
SPLIT_FAMILIES = ["elementwise", "reduce", "matmul", "linalg", "conv", "norm", "attention", "embedding", "indexing",
                  "random", "control flow", "stacks"]  # fmt: skip


def sharded(name, zero=0):
    ranks, sbp, of_weights = GRIDS[name]
    place = flow.placement("cpu", ranks)
    flow.manual_seed(1)
    model = mlp(16).to_global(place, of_weights)
    graph = Train(model, flow.optim.Adam(model.parameters(), lr=0.01))
    if zero:
        graph.config.enable_zero(True, stage=zero, shard_min_size=1)
    return graph, flow.randn(8, 4).to_global(place, sbp), place


@pytest.fixture(scope="module")
def sharded_trips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    expected = {}
    for name, zero in (("data", 0), ("grid", 0), ("data", 3)):
        graph, x, _ = sharded(name, zero)
        graph(x)
        label = f"{name} {zero}"
        kept(folder, label, graph, (x,))
        expected[label] = here(graph, (x,))
    place = flow.placement("cpu", [0, 1])
    for name in SPLIT_FAMILIES:
        make, shape = FAMILIES[name]
        flow.manual_seed(1)
        graph = Plain(lambda g, x: g.model(x), model=nn.Dropout(0.5)) if name == "random" else make()
        for block in graph._g.blocks.values():
            block.to_global(place, "B")
        x = flow.randn(*shape).to_global(place, "S0")
        kept(folder, name, graph, (x,))
        expected[name] = here(graph, (x,))
    return folder, expected, elsewhere(folder, list(expected), devices=4)


@pytest.mark.parametrize("name", SPLIT_FAMILIES)
def test_every_op_family_comes_back_sharded(sharded_trips, name):
    _, expected, found = sharded_trips
    assert expected[name].keys() == found[name].keys()
    for key, value in expected[name].items():
        np.testing.assert_allclose(found[name][key], value, err_msg=key, **SUMS_IN_OTHER_ORDER)


@pytest.mark.parametrize("label", ["data 0", "grid 0", "data 3"])
def test_a_sharded_training_graph_comes_back(sharded_trips, label):
    folder, expected, found = sharded_trips
    assert expected[label].keys() == found[label].keys()
    for key, value in expected[label].items():
        np.testing.assert_allclose(found[label][key], value, err_msg=key, **SUMS_IN_OTHER_ORDER)
    manifest = json.loads((folder / label / "manifest.json").read_text())
    assert manifest["placement"]["hierarchy"] == list(np.shape(GRIDS[label[:-2]][0]))
    assert [leaf["sbp"] for leaf in manifest["inputs"]["leaves"]] == [GRIDS[label[:-2]][1]]


def test_the_sharding_is_part_of_the_export_and_the_devices_are_not(sharded_trips):
    folder, _, _ = sharded_trips
    place = flow.placement("cpu", [[4, 5], [6, 7]])
    loaded = flow.load_graph(folder / "grid 0", placement=place)
    weight = loaded.state_dict()["model.0.weight"]
    assert weight.placement == place and weight.sbp == (flow.sbp.broadcast, flow.sbp.split(0))
    x = flow.tensor(np.load(folder / "grid 0.npz")["arr_0"]).to_global(place, ["S0", "B"])
    live, y, _ = sharded("grid")
    live(y)
    text = loaded.program.compile().as_text()
    kinds = [k for k in ("all-reduce(", "all-gather(", "reduce-scatter(", "all-to-all(") if k in text]
    assert kinds and kinds == [
        k
        for k in ("all-reduce(", "all-gather(", "reduce-scatter(", "all-to-all(")
        if k in live.program.compile().as_text()
    ]
    losses = [loaded(x).item() for _ in range(2)]
    assert losses[1] < losses[0] and loaded.state_dict()["model.0.weight"].placement == place


def test_a_sharded_graph_refuses_other_grids_and_layouts(sharded_trips):
    folder, _, _ = sharded_trips
    with pytest.raises(ExportError, match=r"(?s)load_graph.*4 ranks.*exported for 2 × 2 ranks.*fix: .*\[\[0, 1\]"):
        flow.load_graph(folder / "grid 0", placement=flow.placement("cpu", [0, 1, 2, 3]))
    with pytest.raises(ExportError, match=r"(?s)device='cpu:0'.*2 × 2"):
        flow.load_graph(folder / "grid 0", device="cpu:0")
    loaded = flow.load_graph(folder / "grid 0")
    x = flow.ones(8, 4)
    with pytest.raises(GraphTypeError, match=r"(?s)x is local.*float32\[8, 4\] in \(S0, B\).*to_global"):
        loaded(x)
    with pytest.raises(GraphTypeError, match=r"(?s)\(B, B\).*rule: .*\(S0, B\).*to_global"):
        loaded(x.to_global(loaded.placement, ["B", "B"]))


# -- what is in the files ----------------------------------------------------------------------------------------------


def test_weights_have_the_names_that_users_know_however_the_program_keeps_them(tmp_path):
    flow.manual_seed(1)
    graph, x = deep(), flow.randn(2, 6, 8)
    graph.export(tmp_path / "deep", x)
    assert {p.name for p in (tmp_path / "deep").iterdir()} == FILES | OTHER_FORMS
    manifest = json.loads((tmp_path / "deep/manifest.json").read_text())
    stacks = [entry for entry in manifest["state"]["inputs"] if entry["stacked"]]
    assert stacks and all(len(entry["tensors"]) >= 3 for entry in stacks)
    with safe_open(tmp_path / "deep/weights.safetensors", "np") as file:
        for name, p in graph.blocks.named_parameters():
            np.testing.assert_array_equal(file.get_tensor(f"blocks.{name}"), p.numpy())
    names = [manifest["state"]["tensors"][i]["path"] for i in stacks[0]["tensors"]]
    assert "".join(name.split(".")[1] for name in names) in "0123"
    assert {"sbpjax", "jax", "jaxlib", "numpy", "safetensors", "python"} == set(manifest["packages"])


def test_the_numbers_of_optimizers_can_be_set(tmp_path):
    graph, x = adam(), flow.randn(8, 4)
    graph.export(tmp_path / "g", x)
    loaded = flow.load_graph(tmp_path / "g")
    group = "optimizer[0].param_groups[0]"
    assert loaded.numbers == {f"{group}.lr": 0.01, f"{group}.betas[0]": 0.9, f"{group}.betas[1]": 0.999,
                              f"{group}.eps": 1e-8}  # fmt: skip
    before = loaded.state_dict()["model.0.weight"].numpy()
    loaded.numbers[f"{group}.lr"] = 0.0
    loaded(x)
    np.testing.assert_array_equal(loaded.state_dict()["model.0.weight"].numpy(), before)
    loaded.numbers[f"{group}.lr"] = 0.1
    loaded(x)
    assert (loaded.state_dict()["model.0.weight"].numpy() != before).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64", "complex128", "bool", "int8",
                                   "float8_e4m3fn", "uint32"])  # fmt: skip
def test_weights_of_every_dtype(tmp_path, dtype):
    values = flow.tensor(np.arange(6).reshape(2, 3)).to(getattr(flow, dtype))
    graph = Plain(lambda g: g.table.clone(), table=values)
    graph.export(tmp_path / "g")
    found = flow.load_graph(tmp_path / "g")()
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found.float().numpy() if "complex" not in dtype else found.numpy(),
                                  values.float().numpy() if "complex" not in dtype else values.numpy())  # fmt: skip


def test_structures_come_back_without_their_classes(tmp_path):
    def build(g, batch, pair, *, scale=2.0, mode=None):
        return Out(batch.x * scale, {"pair": [pair[0], None, "text"], "nan": float("nan")}), (pair[1],)

    x = flow.randn(3)
    graph = Plain(build)
    graph.export(tmp_path / "g", Batch(x), (x, x + 1), scale=3.0, mode=None)
    loaded = flow.load_graph(tmp_path / "g")
    out, last = loaded(Batch(x), (x, x + 1), scale=3.0, mode=None)
    assert type(out).__name__ == "Out" and out._fields == ("loss", "extra") and type(out) is not Out
    np.testing.assert_array_equal(out.loss.numpy(), (x * 3).numpy())
    assert out.extra["pair"][1:] == [None, "text"] and np.isnan(out.extra["nan"])
    assert isinstance(last, tuple) and len(last) == 1
    with pytest.raises(GraphTypeError, match=r"(?s)scale = 4.0.*exported with 3.0"):
        loaded(Batch(x), (x, x + 1), scale=4.0, mode=None)
    with pytest.raises(GraphTypeError, match=r"(?s)another structure.*batch\.x|another structure.*args"):
        loaded(x, (x, x + 1), scale=3.0, mode=None)


def test_a_tensor_that_build_reads_from_outside_is_a_weight(tmp_path):
    outside = flow.tensor([1.0, 2.0])
    Plain(lambda g, x: x + outside).export(tmp_path / "g", flow.ones(2))
    assert flow.load_graph(tmp_path / "g")(flow.ones(2)).tolist() == [2.0, 3.0]


def test_state_is_saved_and_loaded_by_name(tmp_path):
    graph, x = adam(), flow.randn(8, 4)
    graph.export(tmp_path / "g", x)
    first, second = flow.load_graph(tmp_path / "g"), flow.load_graph(tmp_path / "g")
    held = first.state_dict()["model.0.weight"].jax()
    first(x)
    assert np.isfinite(np.asarray(held)).all()  # what a user holds is not donated
    assert first(x).item() != second(x).item()
    second.load_state_dict(first.state_dict())
    assert first(x).item() == second(x).item()
    with pytest.raises(StateDictError, match=r"(?s)unknown names \['a'\]"):
        second.load_state_dict({"a": x})
    with pytest.raises(StateDictError, match=r"(?s)model.0.weight: \(8,\).*is \(8, 4\)"):
        second.load_state_dict({"model.0.weight": flow.ones(8)}, strict=False)


# -- devices and sizes -------------------------------------------------------------------------------------------------


def test_one_export_for_many_platforms_and_devices(tmp_path):
    graph, x = Plain(lambda g, x: g.model(x), model=mlp()), flow.randn(8, 4)
    graph.export(tmp_path / "g", x, platforms=["cpu", "gpu", "tpu"])
    loaded = flow.load_graph(tmp_path / "g", device="cpu:3")
    assert loaded.platforms == ("cpu", "cuda", "tpu") and "stablehlo" in loaded.stablehlo()
    there = x.to("cpu:3")
    assert loaded(there).device == flow.device("cpu:3")
    np.testing.assert_allclose(loaded(there).numpy(), graph(x).numpy(), **SUMS_IN_OTHER_ORDER)
    with pytest.raises(GraphTypeError, match=r"(?s)cpu:2.*fix: .*to\('cpu:3'\)"):
        loaded(x.to("cpu:2"))
    Plain(lambda g, x: x + 1).export(tmp_path / "t", x, platforms="tpu")
    with pytest.raises(ExportError, match=r"(?s)platform 'cpu'.*exported for \['tpu'\].*platforms=\['tpu', 'cpu'\]"):
        flow.load_graph(tmp_path / "t")
    with pytest.raises(ExportError, match=r"(?s)platforms=\['abacus'\]"):
        graph.export(tmp_path / "u", x, platforms="abacus")


def test_a_free_batch(tmp_path):
    net = nn.Sequential(mlp(), nn.LayerNorm(4), nn.Dropout(0.5))
    graph = Plain(lambda g, x, y: (((g.model(x) - y) ** 2).mean(), x.reshape(x.shape[0], 2, 2)[:, 1]), model=net.eval())
    graph.export(tmp_path / "g", flow.ones(2, 4), flow.ones(2, 4), dynamic_batch=True)
    loaded = flow.load_graph(tmp_path / "g")
    for rows in (1, 5, 8):
        x, y = flow.randn(rows, 4), flow.randn(rows, 4)
        for a, b in zip(loaded(x, y), graph(x, y), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), **SUMS_IN_OTHER_ORDER)
    with pytest.raises(GraphTypeError, match=r"(?s)args\[1\]: float32\[2, 4\].*float32\[batch, 4\].*the same for all"):
        loaded(flow.ones(3, 4), flow.ones(2, 4))
    assert "float32[batch, 4]" in repr(loaded)


def test_arguments_that_were_exported_by_name_may_come_without(tmp_path):
    x, y = flow.randn(3), flow.randn(3)
    both = Plain(lambda g, **named: named["first"] - named["second"])
    both.export(tmp_path / "g", first=x, second=y)
    loaded = flow.load_graph(tmp_path / "g")
    for found in (loaded(first=x, second=y), loaded(x, y), loaded(x, second=y), loaded(y, first=x)):
        assert (found == x - y).all()
    with pytest.raises(GraphTypeError, match="another structure"):
        loaded(x)


@pytest.mark.parametrize("name", ["elementwise", "matmul", "conv", "attention", "random", "embedding", "stacks"])
def test_a_free_batch_of_every_usual_family(tmp_path, name):
    make, shape = FAMILIES[name]
    make = (lambda: Plain(lambda g, x: g.model(x), model=nn.Dropout(0.5))) if name == "random" else make
    flow.manual_seed(1)
    graph = make()
    graph.export(tmp_path / "g", flow.ones(*shape), dynamic_batch=True)
    loaded = flow.load_graph(tmp_path / "g")
    for rows in (1, 3):
        x = flow.randn(rows, *shape[1:])
        flow.manual_seed(2)
        expected = graph(x).numpy()
        flow.manual_seed(2)
        np.testing.assert_allclose(loaded(x).numpy(), expected, **SUMS_IN_OTHER_ORDER)


LAST = [0, 2, 1]
WITH_THE_NUMBER_OF_ROWS = {
    "state of a recurrence": lambda x: flow.cat([x, flow.zeros(x.shape[0], 2)], 1),
    "one per row": lambda x: x[flow.arange(x.shape[0]), x.argmax(-1)],
    "numbers of rows": lambda x: x + flow.arange(1, x.size(0) + 1).unsqueeze(1),
    "columns": lambda x: x[:, LAST] + x[..., flow.tensor(LAST)],
    "recurrence": lambda x: RECURRENT(x.unsqueeze(-1))[0],
    "slopes of their own": lambda x: flow.where(x > 0, nn.functional.hardswish(x @ SQUARE), x.clamp(-1, 1)).maximum(-x),
}
SQUARE = nn.Parameter(flow.eye(3))  # with a gradient
RECURRENT = nn.LSTM(1, 3, batch_first=True)


@pytest.mark.parametrize("name", WITH_THE_NUMBER_OF_ROWS)
def test_a_free_batch_in_sizes_and_indices(tmp_path, name):
    graph = Plain(lambda g, x: WITH_THE_NUMBER_OF_ROWS[name](x))
    graph.export(tmp_path / "g", flow.ones(2, 3), dynamic_batch=True)
    loaded = flow.load_graph(tmp_path / "g")
    for rows in (1, 5):
        x = flow.randn(rows, 3)
        np.testing.assert_allclose(loaded(x).numpy(), graph(x).numpy(), **SUMS_IN_OTHER_ORDER)


def test_a_batch_that_cannot_be_free(tmp_path):
    split = Plain(lambda g, x: flow.stack([row * i for i, row in enumerate(x)]))
    with pytest.raises(ExportError, match=r"(?s)dynamic_batch=True.*fix: .*without dynamic_batch"):
        split.export(tmp_path / "g", flow.ones(4, 4), dynamic_batch=True)
    graph, x, _ = sharded("data")
    with pytest.raises(ExportError, match=r"(?s)a sharded graph.*one device only"):
        graph.export(tmp_path / "g", x, dynamic_batch=True)
    with pytest.raises(ExportError, match=r"(?s)of shapes \(3,\), \(4,\).*of one size"):
        Plain(lambda g, x, y: (x, y)).export(tmp_path / "g", flow.ones(3), flow.ones(4), dynamic_batch=True)
    assert not (tmp_path / "g").exists() and not list(tmp_path.iterdir())


def test_what_is_wrong_at_any_size_is_not_said_to_be_the_batch(tmp_path):
    graph = Plain(lambda g, x: g.model(x), model=nn.Linear(4, 2))
    with pytest.raises(OpError, match=r"x \(1, 5\), weight \(2, 4\)"):
        graph.export(tmp_path / "g", flow.ones(1, 5), dynamic_batch=True)
    trains = Plain(lambda g, x: g.model(x), model=nn.BatchNorm1d(4))
    with pytest.warns(UserWarning, match="training mode"), contextlib.suppress(ExportError):
        trains.export(tmp_path / "g", flow.ones(3, 4), dynamic_batch=True)


def test_a_graph_that_was_not_called_has_no_arguments(tmp_path):
    class AddOne(nn.Graph):
        def build(self, x):
            return x + 1

    with pytest.raises(ExportError, match=r"(?s)a graph that was not called.*after the path, or call the graph first"):
        AddOne().export(tmp_path / "g")


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.fixture
def export(tmp_path):
    Plain(lambda g, x: g.model(x), model=nn.Linear(4, 2)).export(tmp_path / "g", flow.ones(3, 4))
    return tmp_path / "g"


def test_inputs_of_another_signature(export):
    loaded = flow.load_graph(export)
    for args, seen in (
        ((flow.ones(4, 4),), r"float32\[4, 4\].*is float32\[3, 4\]"),
        ((flow.ones(3, 4).double(),), r"float64\[3, 4\].*fix: .*\.to\(sbpjax.float32\)"),
        ((), r"another structure: none.*its export: args\[0\]"),
        (([flow.ones(3, 4)],), r"another structure: argument 0\[0\]"),
        ((np.ones((3, 4), np.float32),), r"is a ndarray.*fix: .*sbpjax.tensor"),
        ((flow.ones(3, 4, placement=flow.placement("cpu", [0]), sbp="B"),), r"is global.*to_local"),
    ):
        with pytest.raises(GraphTypeError, match=rf"(?s)loaded.*seen: .*{seen}"):
            loaded(*args)


@pytest.mark.parametrize("name", sorted(FILES))
def test_missing_and_damaged_files(export, name):
    data = (export / name).read_bytes()
    (export / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(ExportError, match=rf"(?s){name}.*written together.*fix: +export again"):
        flow.load_graph(export)
    (export / name).unlink()
    with pytest.raises(ExportError, match=rf"(?s)no {name}.*fix: "):
        flow.load_graph(export)


def nested(depth):
    return None if depth == 0 else ["list", [nested(depth - 1)]]


def test_a_manifest_of_brackets(export):
    (export / "manifest.json").write_text("[" * 30_000)
    with pytest.raises(ExportError, match=r"manifest.json is no JSON"):
        flow.load_graph(export)


def edited(export, change):
    path = export / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_directory_that_is_none(tmp_path):
    with pytest.raises(ExportError, match=r"(?s)no such directory.*graph.export"):
        flow.load_graph(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"(?s)a file.*is a directory"):
        flow.load_graph(tmp_path / "file")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m.update(format="other"), r"format 'other'"),
        (lambda m: m.update(format_version=1), r"format version 1, written by sbpjax .*reads version 2"),
        (lambda m: m.pop("state"), r"without a valid state"),
        (lambda m: m["state"]["tensors"][0].update(shape=[5, 5]), r"float32\[2, 4\] in weights.*float32\[5, 5\] by"),
        (lambda m: m["state"]["tensors"][0].update(path="nobody"), r"without nobody"),
        (lambda m: m["state"]["inputs"].pop(), r"not as it was written"),
        (lambda m: m["outputs"].update(structure=["what", [None]]), r"not as it was written"),
        (lambda m: m["state"]["inputs"][0].update(tensors=[-1]), r"field state.inputs\[0\]"),
        (lambda m: m["state"]["tensors"][0].pop("stored_as"), r"field state.tensors\[0\]"),
        (lambda m: m["state"]["tensors"][0].pop("sbp"), r"field state.tensors\[0\].sbp"),
        (lambda m: m["state"].update(order=[7]), r"field state.order"),
        (lambda m: m["state"]["tensors"][0].update(dtype="O"), r"field state.tensors\[0\].dtype"),
        (lambda m: m.update(placement={"type": "cpu", "hierarchy": [10**12]}), r"field placement.hierarchy"),
        (lambda m: m["inputs"]["leaves"][0].update(shape=[[3], 4]), r"field inputs.leaves\[0\].shape"),
        (lambda m: m["outputs"]["leaves"][0].pop("global"), r"field outputs.leaves\[0\]"),
        (lambda m: m["outputs"].update(structure=nested(99)), r"field outputs.structure"),
        (lambda m: m["program"].update(calling_convention_version=99), r"convention 99.*pip install \"jax=="),
    ],
)
def test_manifests_that_do_not_fit(export, change, text):
    edited(export, change)
    with pytest.raises(ExportError, match=rf"(?s)load_graph.*{text}"):
        flow.load_graph(export)


def test_what_cannot_be_written(tmp_path):
    target = tmp_path / "g"
    with pytest.raises(ExportError, match=r"(?s)seen: .*is a object.*fix: .*def build"):
        Plain(lambda g, x, o: x).export(target, flow.ones(2), object())
    with pytest.raises(ExportError, match=r"(?s)container of type Strange"):
        Plain(lambda g, x: type("Strange", (dict,), {})(x=x)).export(target, flow.ones(2))
    with flow.abstract():
        model = nn.Linear(2, 2)
    with pytest.raises(ExportError, match=r"(?s)model.weight is abstract"):
        Plain(lambda g, x: g.model(x), model=model).export(target, TensorSpec((2, 2)))
    assert not list(tmp_path.iterdir())


def test_a_call_back_into_python_cannot_be_exported(tmp_path):
    def noisy(g, x):
        return flow.from_jax(jax.pure_callback(np.sin, jax.ShapeDtypeStruct((2,), np.float32), x.jax()))

    with pytest.raises(ExportError, match=r"(?s)jax.export: .*no call back into Python"):
        Plain(noisy).export(tmp_path / "g", flow.ones(2))


def test_after_a_call_an_export_needs_no_arguments(tmp_path):
    graph, x = Plain(lambda g, x: g.model(x), model=nn.Linear(4, 8)), flow.ones(2, 4)
    with pytest.raises(TypeError):
        graph.export(tmp_path / "never-called")
    graph(flow.ones(3, 4))
    expected = graph(x)
    loaded = flow.load_graph(graph.export(tmp_path / "last"))
    assert np.array_equal(loaded(x).numpy(), expected.numpy())
    with pytest.raises(GraphTypeError):
        loaded(flow.ones(3, 4))


def test_after_a_call_a_sharded_graph_exports_as_it_was_called(tmp_path):
    p = flow.placement("cpu", [0, 1])
    graph = Plain(lambda g, x: g.model(x), model=nn.Linear(4, 8).to_global(p, flow.sbp.broadcast))
    x = flow.randn(2, 4, placement=p, sbp=flow.sbp.split(0))
    expected = graph(x)
    loaded = flow.load_graph(graph.export(tmp_path / "last"))
    result = loaded(x)
    assert result.sbp == expected.sbp and np.array_equal(result.numpy(), expected.numpy())


def test_an_export_replaces_an_export_and_nothing_else(export, tmp_path):
    graph = Plain(lambda g, x: x * 5)
    graph.export(export, flow.ones(1))
    assert flow.load_graph(export)(flow.ones(1)).item() == 5
    (export / "notes.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"(?s)a directory with notes.txt.*anything else is kept"):
        graph.export(export, flow.ones(1))
    shutil.rmtree(export)
    export.write_text("mine")
    with pytest.raises(ExportError, match="a file of that name"):
        graph.export(export, flow.ones(1))
    assert export.read_text() == "mine" and [p.name for p in tmp_path.iterdir()] == ["g"]


@pytest.mark.filterwarnings("error")
def test_an_export_in_training_mode_is_told(tmp_path):
    for number, (layer, does) in enumerate({nn.Dropout(0.5): "draws random", nn.BatchNorm1d(4): "changes its"}.items()):
        model = nn.Sequential(nn.Linear(4, 4), layer)
        graph, x = Plain(lambda graph, x: graph.model(x), model=model), flow.ones(2, 4)
        graph(x)
        with pytest.warns(UserWarning, match=rf"(?s)training mode, which {does}.*fix:  model.eval\(\) first"):
            graph.export(tmp_path / f"{number}")
        model.eval()
        graph(x)
        graph.export(tmp_path / f"{number}e")
        np.testing.assert_array_equal(flow.load_graph(tmp_path / f"{number}e")(x).numpy(), model(x).numpy())
