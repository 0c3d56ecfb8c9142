"""Op calls: a traced program with ops as calls is the program with ops traced one by one."""

import jax
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.programs.normalise import normalise, source_line
from sbpjax._core.tensor.dispatch import op_calls
from sbpjax._core.tensor.dispatch.dispatch import apply
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle.mode import mode
from tests.support import graphs


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, x):
        y = self.norm(self.first(x))
        values, _ = y.max(dim=1, keepdim=True)
        y = (y - values).exp() * 0.5 + y.clamp(-1, 1) * -0.0
        return x + self.last(y)


class Train(graphs.Train):
    loss = staticmethod(lambda model, x: model(x).square().mean())  # on a line of this file


def graph_of(layers=2):
    model = nn.Sequential(*[Net() for _ in range(layers)])
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)

    graph = Train(model, optimizer)
    graph.config.enable_block_scan(False)
    return graph


def flat(graph, x):
    graph.build_graph(x)
    return normalise(graph.program.jaxpr)


def text(program):
    """Return the equations with values numbered in order: equal for equal programs."""
    number = {}
    name = lambda v: repr(v) if not hasattr(v, "aval") or hasattr(v, "val") else number.setdefault(v, len(number))  # noqa: E731
    return [
        (
            e.primitive.name,
            [name(v) for v in e.invars],
            [(name(v), str(v.aval)) for v in e.outvars],
            str(e.source_info.name_stack).split("/transpose(")[0],  # behind it JAX 0.12 repeats the module's path
            source_line(e),
            {k: str(p) for k, p in e.params.items() if k not in ("jvp_jaxpr_fun", "jvp_jaxpr_thunk")},
        )
        for e in program.eqns
    ]


@pytest.fixture(autouse=True)
def fresh():
    op_calls._forwards.clear()
    yield
    op_calls._forwards.clear()


def test_the_program_is_that_of_ops_traced_one_by_one(monkeypatch):
    flow.manual_seed(0)
    x = flow.randn(4, 8)
    called = text(flat(graph_of(), x))
    assert op_calls._forwards
    again = text(flat(graph_of(), x))
    monkeypatch.setattr(op_calls, "can_call", lambda op: False)
    one_by_one = text(flat(graph_of(), x))
    assert called == one_by_one == again
    lines = {line.rpartition(":")[2] for *_, line, _ in called if "test_op_calls" in line}
    assert len(lines) >= 5  # of each op its own line, though both layers share their traces


RUNS = []


def counted(x, /):
    RUNS.append(x.shape)
    return jax.lax.sin(x)


def test_an_op_is_traced_once_per_shape():
    def build(x):
        y = x
        for _ in range(5):
            y = apply(counted, y)
        y.sum().backward()
        return y

    step = flow.compile(build)
    for size in (2, 3):
        step(flow.ones(size, requires_grad=True))
    assert RUNS == [(2,), (3,)]


def test_numbers_are_part_of_the_program():
    """A scalar that differs only in its sign of zero, or in its class, is another program."""
    made = []
    for value in (0.0, -0.0, 0, True):

        def build(x, value=value):
            y = x * value
            y.sum().backward()
            return y

        x = flow.ones(2, requires_grad=True)
        made.append(flow.compile(build)(x).tolist())
    assert [str(v[0]) for v in made] == ["0.0", "-0.0", "0.0", "1.0"]


def test_functions_that_hold_something_are_traced_where_they_are_called():
    value = jax.numpy.ones(2)

    def holds(x, /):
        return x + value

    assert not op_calls.can_call(op_of(holds))
    assert op_calls.can_call(op_of(jax.lax.sin))
    assert not op_calls.can_call(op_of(jax.jit(jax.lax.sin)))


def test_calls_are_only_for_programs_that_inline_them():
    assert mode.calls is False
    with op_calls.trace_calls():
        assert mode.calls is True
    assert mode.calls is False
    closed = jax.make_jaxpr(jax.numpy.sin)(1.0)
    assert op_calls.inline_calls(closed) is closed
