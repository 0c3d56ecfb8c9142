"""Axes with the names of a mesh: placements of meshes, sbp by name, names through ops, graphs and files."""

import copy
import pickle

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax.errors import PlacementError, PlacementTypeError, SbpError

NAMES = ("data", "model")


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def mesh(request):
    return jax.make_mesh((2, 4), NAMES, axis_types=(request.param,) * 2)


@pytest.fixture
def p(mesh):
    return flow.placement(mesh)


def test_placement_of_a_mesh(mesh, p):
    assert p.mesh == mesh and p.axis_names == NAMES and p.hierarchy == (2, 4)
    assert flow.placement.from_mesh(mesh) == p == flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert repr(p).endswith("axis_names=('data', 'model'))")
    for other in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert other == p and other.mesh == mesh


def test_names_without_a_mesh():
    p = flow.placement("cpu", [[0, 1], [2, 3]], axis_names=NAMES)
    assert p.mesh == Mesh(np.asarray(jax.devices()[:4]).reshape(2, 2), NAMES)
    unnamed = flow.placement("cpu", [[0, 1], [2, 3]])
    assert unnamed.axis_names == ("a0", "a1") and flow.placement(unnamed.mesh).named is None


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda mesh: flow.placement("cpu", mesh), PlacementTypeError),
        (lambda mesh: flow.placement(mesh, [0, 1]), PlacementTypeError),
        (lambda mesh: flow.placement("cpu"), PlacementTypeError),
        (lambda mesh: flow.placement(mesh.abstract_mesh), PlacementError),
        (lambda mesh: flow.placement.from_mesh("cpu"), PlacementTypeError),
        (lambda mesh: flow.placement("cpu", [0, 1], axis_names=["a", "b"]), PlacementError),
        (lambda mesh: flow.placement("cpu", [[0], [1]], axis_names=["a", "a"]), PlacementError),
        (lambda mesh: flow.placement("cpu", [0], axis_names=[1]), PlacementTypeError),
    ],
)
def test_bad_placements_name_the_fix(mesh, make, error):
    with pytest.raises(error, match=r"(?s)seen: .*rule: .*fix: "):
        make(mesh)


def test_current_placement(mesh, p):
    assert flow.placement.current() is None
    with jax.set_mesh(mesh):
        assert flow.placement.current() == p and flow.placement.current().mesh == mesh
        found = []
        jax.jit(lambda x: found.append(flow.placement.current()) or x)(1.0)
        assert found == [p]
        with flow.placement("cpu", [0, 1]) as inner:
            assert flow.placement.current() is inner


@pytest.mark.parametrize(
    "given, codes",
    [
        ({"data": sbp.split(0), "model": sbp.broadcast}, (0, -1)),
        ({"model": sbp.split(1)}, (-1, 1)),
        ({"model": "P", "data": "S1"}, (1, -2)),
        ({}, (-1, -1)),
        (PartitionSpec("data", "model"), (0, 1)),
        (PartitionSpec(None, ("data", "model")), (1, 1)),
        (PartitionSpec("model", unreduced={"data"}), (-2, 0)),
        (PartitionSpec(reduced={"data"}), (-1, -1)),
    ],
)
def test_sbp_by_axis_name(p, given, codes):
    expected = sbp.algebra.to_sbp(codes)
    made = flow.arange(32.0).reshape(8, 4)
    assert made.to_global(p, given).sbp == expected
    assert flow.ones(8, 4, placement=p, sbp=given).sbp == expected
    assert flow.zeros(8, 4, placement=p, sbp="B,B").to_global(sbp=given, grad_sbp=given).sbp == expected
    layer = nn.Linear(8, 4, bias=False).to_global(p, given)
    assert layer.weight.sbp == expected


def test_named_sharding_brings_its_placement(mesh, p):
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    for x in (flow.ones(8, 4, sbp=sharding), flow.ones(8, 4).to_global(sbp=sharding), flow.randn(8, 4, sbp=sharding)):
        assert x.sbp == (sbp.split(0), sbp.broadcast) and x.placement.mesh == mesh
        assert x.jax().sharding == sharding
    # An axis of the sharding's mesh, whatever the placement calls it.
    plain = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert flow.ones(8, 4, placement=plain, sbp=sharding).sbp == (sbp.split(0), sbp.broadcast)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"rows": sbp.split(0)}, "axis 'rows'"),
        ({0: sbp.split(0)}, "axis 0"),
        ({"data": 3}, "an entry of type int"),
        ({"data": sbp.split(2)}, r"split\(2\) of a tensor with 2 dims"),
        (PartitionSpec("rows"), "axis 'rows'"),
        (PartitionSpec(("model", "data")), "the inner axis cuts the parts of the outer one"),
        (PartitionSpec(PartitionSpec.UNCONSTRAINED), "UNCONSTRAINED"),
        (PartitionSpec(None, None, "data"), r"split\(2\)"),
    ],
)
def test_bad_sbp_by_name(p, given, words):
    with pytest.raises(ValueError if "int" not in words else TypeError, match=rf"(?s){words}.*rule: .*fix: "):
        flow.ones(8, 4).to_global(p, given)


def test_sharding_of_another_mesh_is_refused(p):
    other = NamedSharding(jax.make_mesh((4, 2), NAMES), PartitionSpec("data"))
    with pytest.raises(SbpError, match=r"(?s)the mesh of a sharding is the placement's.*fix: "):
        flow.ones(8, 4).to_global(p, other)


def test_names_pass_through_ops_and_backward(mesh, p):
    x = flow.ones(8, 4, placement=p, sbp={"data": sbp.split(0)}).requires_grad_()
    w = flow.ones(4, 8, placement=p, sbp={"model": sbp.split(1)})
    y = (x @ w).exp()
    y.sum().backward()
    for t in (y, x.grad, flow.ones_like(y), y[2:], y.reshape(4, 16), y.to_global(sbp={"data": sbp.split(1)})):
        assert t.placement.axis_names == NAMES
        assert t.jax().sharding.mesh == mesh or sbp.partial_sum in t.sbp
    assert y.jax().sharding == NamedSharding(mesh, PartitionSpec("data", "model"))


def test_named_and_unnamed_placements_meet(mesh, p):
    """Names do not make another placement; results take those that are given."""
    plain = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    x = flow.ones(8, 4, placement=plain, sbp="S0,B")
    y = flow.ones(8, 4, placement=p, sbp="S0,S1")
    for z in (x + y, y + x):
        assert z.placement.axis_names == NAMES
        np.testing.assert_array_equal(z.numpy(), 2 * np.ones((8, 4), "f"))
    assert (x + x).placement.axis_names == ("a0", "a1")
    renamed = x.to_global(p)
    assert renamed.placement.mesh == mesh and renamed.jax().sharding == NamedSharding(mesh, PartitionSpec("data"))
    x.add_(1.0)  # its memory is its own
    np.testing.assert_array_equal(renamed.numpy(), np.ones((8, 4), "f"))


def test_names_pass_through_a_training_graph(mesh, p):
    model = nn.Linear(4, 4).to_global(p, {"model": sbp.split(0)})

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            y = self.model(x.to_global(sbp={"data": sbp.split(0)}))
            y.sum().backward()
            return y

    y = Step()(flow.ones(8, 4, placement=p, sbp=PartitionSpec("data")))
    assert y.placement.axis_names == model.weight.placement.axis_names == NAMES
    assert model.weight.jax().sharding == NamedSharding(mesh, PartitionSpec("model"))


def test_names_pass_through_files(mesh, p, tmp_path):
    state = {"x": flow.ones(8, 4, placement=p, sbp={"data": sbp.split(0)}), "where": p}
    flow.checkpoint.save(state, tmp_path / "a")
    (entry,) = flow.checkpoint.inspect(tmp_path / "a")
    assert entry.axis_names == NAMES and entry.sbp == "S0,B"
    found = flow.checkpoint.load(tmp_path / "a", placement=p, sbp={"model": sbp.split(1)})
    assert found["x"].sbp == (sbp.broadcast, sbp.split(1)) and found["x"].placement.mesh == mesh
    assert found["where"].axis_names == NAMES


def test_reports_and_plan_files_have_the_names(p, tmp_path):
    model = nn.Linear(8, 8).to_global(p, {"model": sbp.split(0)})

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optim.SGD(model.parameters(), lr=0.1))
            self.config.enable_auto_parallel()

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    x = flow.ones(8, 8, placement=p, sbp={"data": sbp.split(0)})
    graph = Step()
    graph(x)
    text = str(graph.explain(level=2))
    assert "(data)" in text and "(a0)" not in text
    assert "all_gather(model)" in str(flow.explain(lambda a: a.to_global(sbp="B,B") + 1, x.to_global(sbp="B,S0")))
    for name in ("plan.json", "plan.py"):
        plan = flow.auto.load(graph.auto_parallel_report().save(tmp_path / name))
        assert plan.axis_names == NAMES
    (tmp_path / "own.py").write_text(
        'HIERARCHY = (2, 4)\nAXIS_NAMES = ("data", "model")\nPARAMETERS = {"model.weight": {"model": "S1"}}\n'
    )
    assert flow.auto.load(tmp_path / "own.py").find("parameter", "model.weight") == (-1, 1)
    (tmp_path / "own.py").write_text('HIERARCHY = (2, 4)\nAXIS_NAMES = ("data",)\nPARAMETERS = {}\n')
    with pytest.raises(SbpError, match=r"AXIS_NAMES \('data',\), not a name for each of 2 axes"):
        flow.auto.load(tmp_path / "own.py")
