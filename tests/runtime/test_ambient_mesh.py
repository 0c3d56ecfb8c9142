"""Eager work under `jax.set_mesh` of meshes of any axis types: the same values, places and programs as without."""

import ast
import concurrent.futures
import pathlib
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax._core.jax_private import abstract_mesh_context, device_context, unset
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh

MIXED = (AxisType.Explicit, AxisType.Auto)
TYPES = {"auto": (AxisType.Auto,) * 2, "explicit": (AxisType.Explicit,) * 2, "mixed": MIXED}


@pytest.fixture(params=[*TYPES, "other devices"])
def mesh(request):
    if request.param == "other devices":  # than those of `p`
        return jax.make_mesh((2, 2), ("data", "model"), devices=jax.devices()[4:])
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=TYPES[request.param])


@pytest.fixture
def p():
    return flow.placement("cpu", [[0, 1], [2, 3]])


def local_op(p):
    return (flow.ones(3, 3) @ flow.ones(3, 3)).exp()


def new_local_tensors(p):
    return flow.cat([flow.arange(3.0), flow.tensor([1.0, 2.0]), flow.from_numpy(np.ones(2, np.float32)), flow.zeros(1)])


def local_backward(p):
    x = flow.arange(4.0, requires_grad=True)
    (x * x).sum().backward()
    return x.grad


def view(p):
    return flow.arange(12.0).reshape(3, 4).transpose(0, 1)[1:]


def global_op(p):
    x = flow.arange(64.0, placement=p, sbp=[sbp.split(0), sbp.broadcast]).reshape(8, 8)
    return x @ x.to_global(sbp=[sbp.broadcast, sbp.split(0)])


def boxing(p):
    x = flow.arange(8.0).to_global(p, [sbp.partial_sum, sbp.split(0)])
    return x.to_global(flow.placement("cpu", [4, 5, 6]), sbp.split(0))


def random_numbers(p):
    flow.manual_seed(3)
    return flow.randn(8, 8, placement=p, sbp=[sbp.split(0), sbp.split(1)])


def global_backward(p):
    x = flow.arange(8.0, placement=p, sbp=[sbp.split(0), sbp.broadcast]).requires_grad_()
    (x * x).sum().backward()
    return x.grad


def training_step(p):
    flow.manual_seed(3)
    model = nn.Linear(4, 4).to_global(p, [sbp.broadcast, sbp.broadcast])
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model(flow.ones(8, 4, placement=p, sbp=[sbp.split(0), sbp.broadcast])).sum().backward()
    optimizer.step()
    return model.weight


def graph(p):
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to_global(p, [sbp.broadcast, sbp.split(0)])

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    return Step()(flow.ones(8, 4, placement=p, sbp=[sbp.split(0), sbp.broadcast]))


def compiled(p):
    return flow.compile(lambda x: x.exp())(flow.ones(8, 4, placement=p, sbp=[sbp.split(0), sbp.broadcast]))


def transform(p):
    return flow.func.vmap(flow.func.grad(lambda x: (x * x).sum()))(flow.arange(12.0).reshape(3, 4))


def function_of_jax(p):
    return flow.wrap_jax(jnp.cumsum)(flow.arange(4.0))


def pipeline(p):
    flow.manual_seed(3)
    stages = [flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])]

    class Stages(nn.Graph):
        def __init__(self):
            super().__init__()
            self.stages = nn.ModuleList([nn.Linear(4, 4).to_global(place, sbp.broadcast) for place in stages])
            for i, place in enumerate(stages):
                self.stages[i].to(nn.graph.GraphModule).set_stage(i, place)
            self.config.set_gradient_accumulation_steps(2)
            self.add_optimizer(optim.SGD(self.stages.parameters(), lr=0.1))

        def build(self, x):
            for stage, place in zip(self.stages, stages, strict=True):
                x = stage(x.to_global(place, sbp.split(0)))
            loss = x.sum()
            loss.backward()
            return loss

    return Stages()(flow.ones(8, 4, placement=stages[0], sbp=sbp.split(0)))


def batches(p):
    data = flow.utils.data.TensorDataset(flow.arange(32.0).reshape(16, 2))
    loader = flow.utils.data.DataLoader(data, batch_size=8)
    return next(iter(flow.utils.data.GlobalLoader(loader, flow.placement("cpu", [0, 1]), sbp.split(0))))[0]


def collective(p):
    x = flow.arange(4.0)
    flow.distributed.all_reduce(x)
    return x


def part_of_a_rank(p):
    return flow.arange(12.0, placement=p, sbp=[sbp.split(0), sbp.split(0)]).to_local()


def samples(p):
    flow.manual_seed(3)
    return flow.distributions.Gamma(flow.ones(4), flow.ones(4)).rsample()


WORK = [
    *(local_op, new_local_tensors, local_backward, view, global_op, boxing, random_numbers, global_backward),
    *(training_step, graph, compiled, transform, function_of_jax, pipeline, batches, collective, part_of_a_rank),
    samples,
]


def sharding_of(x):
    return x._fresh()._array.sharding


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_work_is_that_without_a_mesh(mesh, p, work):
    expected = work(p)
    with jax.set_mesh(mesh):
        found = work(p)
        again = work(p)  # by the program that is known
        values = found.numpy()
        assert jax.sharding.get_mesh() == mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
    np.testing.assert_array_equal(values, expected.numpy())
    np.testing.assert_array_equal(again.numpy(), values)
    assert sharding_of(found) == sharding_of(again) == sharding_of(expected)


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_first_call_under_a_mesh(mesh, p, work):
    """A program that is traced and compiled under the mesh serves calls without it."""
    jax.clear_caches()
    with jax.set_mesh(mesh):
        found = work(p)
    expected = work(p)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert sharding_of(found) == sharding_of(expected)


def test_nothing_is_compiled_again(mesh, p, compilations):
    for _ in range(2):  # an op's 17th program, which another test may have left to this one, is compiled twice
        for work in (local_op, global_op, graph, training_step):
            work(p)
    with compilations as count, jax.set_mesh(mesh):
        for work in (local_op, global_op, training_step):
            work(p)
    assert count.count == 0


@pytest.mark.parametrize("work", [local_op, global_op, global_backward], ids=lambda work: work.__name__)
def test_without_jit(mesh, p, work):
    expected = work(p).numpy()
    with jax.set_mesh(mesh), jax.disable_jit():
        np.testing.assert_allclose(work(p).numpy(), expected, rtol=1e-6)


def test_bad_value_of_a_global_op_is_named(mesh, p):
    with jax.set_mesh(mesh), jax.debug_nans(True), pytest.raises(flow.errors.NanError, match=r"(?s)sqrt.*seen.*fix"):
        (flow.zeros(8, 8, placement=p, sbp="S0,B") - 1).sqrt()


def test_checkpoint_is_written_and_read(mesh, p, tmp_path):
    with jax.set_mesh(mesh):
        model = nn.Linear(4, 4).to_global(p, [sbp.split(0), sbp.broadcast])
        flow.save(model.state_dict(), tmp_path / "a")
        other = nn.Linear(4, 4).to_global(p, [sbp.broadcast, sbp.split(0)])
        other.load_state_dict(flow.load(tmp_path / "a", p))
        sharding = sharding_of(other.weight)
    np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())
    assert sharding.mesh == p.mesh


def test_programs_of_the_user_keep_the_mesh(mesh):
    """In a ``jax.jit`` of the user's the mesh stays, and tensors are part of the program."""
    spec = PartitionSpec("data", None)
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.ones((8, 4), "float32"), NamedSharding(mesh, spec))
        bias = flow.arange(4.0)

        def f(a):
            assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
            y = (flow.from_jax(a) + bias).exp().jax()
            return jax.lax.with_sharding_constraint(y, spec) if mesh.axis_types[0] != AxisType.Explicit else y

        found = jax.jit(f)(x)
        np.testing.assert_allclose(
            found, np.exp(np.ones((8, 4), np.float32) + np.arange(4, dtype=np.float32)), rtol=1e-6
        )
        assert found.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2)
        # The constant that the trace read is no part of it.
        np.testing.assert_array_equal((bias + 1).numpy(), np.arange(4) + 1)


def test_global_setter_is_left_as_it_is(mesh, p):
    jax.set_mesh(mesh)
    try:
        global_op(p)
        with pytest.raises(flow.errors.OpError):
            flow.ones(2, 3, placement=p, sbp="S0,B") @ flow.ones(2, 3, placement=p, sbp="S0,B")
        assert jax.sharding.get_mesh() == mesh
    finally:
        abstract_mesh_context.set_local(unset)
        device_context.set_local(unset)


def test_hidden_function_sees_no_mesh(mesh):
    seen = hide_mesh(lambda: jax.sharding.get_abstract_mesh().empty)
    with jax.set_mesh(mesh):
        assert seen() and not jax.sharding.get_abstract_mesh().empty
        # In a trace the mesh is that of the program.
        jax.jit(lambda x: (x, [seen()])[0] if not seen() else pytest.fail("hidden in a trace"))(jnp.ones(2))
        with pytest.raises(ZeroDivisionError):
            hide_mesh(lambda: 1 / 0)()
        assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh


def test_jit_without_mesh_is_a_jit(mesh):
    traces = []
    f = jit_without_mesh(lambda x: traces.append(jax.sharding.get_abstract_mesh().empty) or x + 1, donate_argnums=(0,))
    f(jnp.ones(2))
    with jax.set_mesh(mesh):
        x = hide_mesh(jnp.ones)(2)
        assert f(x).sharding == jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert traces == [True] and x.is_deleted()
    assert "stablehlo" in f.lower(jnp.ones(2)).as_text()


def test_numbers_and_views_read_in_a_trace_are_of_one_device(mesh):
    """Numbers are kept, and so is the payload of a view or a random tensor at its first read."""
    x = jax.device_put(jnp.ones((8, 4), "float32"), NamedSharding(mesh, PartitionSpec("data", None)))
    drawn, view = flow.randn(4), flow.arange(8.0)[2:6]
    with jax.set_mesh(mesh):
        jax.jit(lambda a: (flow.from_jax(a) * 1.2345678 + drawn + view).jax())(x)
        for y in (drawn, view, flow.ones(4) * 1.2345678):
            assert sharding_of(y) == jax.sharding.SingleDeviceSharding(jax.devices()[0])


def test_error_leaves_the_mesh(mesh, p):
    with jax.set_mesh(mesh):
        for fail in (
            lambda: flow.ones(2, 3) @ flow.ones(2, 3),
            lambda: flow.ones(2, 3, placement=p, sbp="S0,B") @ flow.ones(2, 3, placement=p, sbp="S0,B"),
            lambda: flow.wrap_jax(lambda x: 1 / 0)(flow.ones(2)),
            lambda: flow.compile(lambda x: 1 / 0)(flow.ones(2)),
            lambda: flow.func.grad(lambda x: 1 / 0)(flow.ones(2)),
        ):
            with pytest.raises((flow.errors.OpError, ZeroDivisionError)):
                fail()
            assert jax.sharding.get_mesh() == mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh


def test_meshes_in_each_other(p):
    outer = jax.make_mesh((2, 4), ("data", "model"))
    inner = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    with jax.set_mesh(outer):
        with jax.set_mesh(inner):
            for work in WORK:
                work(p)
            assert jax.sharding.get_mesh() == inner
        assert jax.sharding.get_mesh() == outer
        np.testing.assert_array_equal(global_op(p).numpy(), global_op(p).numpy())


def test_each_thread_has_its_own_mesh(p):
    """Also while both threads run the same programs for the first time."""
    both = threading.Barrier(2)

    def run(types):
        mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=TYPES[types])
        with jax.set_mesh(mesh):
            both.wait(60)
            found = [work(p).numpy() for work in (local_op, local_backward, global_op, view)]
            assert jax.sharding.get_mesh() == mesh
        return found

    jax.clear_caches()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for left, right in zip(*pool.map(run, ["auto", "explicit"]), strict=True):
            np.testing.assert_array_equal(left, right)


# `jit_without_mesh` and `Op.call` wrap a function of `jax.jit`; the others are only traced, inside a program.
PLAIN_JIT = {
    "_core/runtime/ambient_mesh.py",
    "_core/compiler/eager/op_calls.py",
    "_core/ops/conv/cpu.py",
    "_core/programs/outline.py",
    "_core/tensor/dispatch/traced_calls.py",
}


def test_programs_of_the_package_do_not_see_the_mesh():
    """A `jax.jit` of the package's own fails under a mesh of other devices: `jit_without_mesh` does not."""
    package = pathlib.Path(flow.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "jax.jit"
    }
    assert found == PLAIN_JIT
