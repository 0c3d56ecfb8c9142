"""`x.sbp` inside traced programs: exact where it is known, a value to hand on where the plan decides."""

import copy

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import SbpError
from tests.support.graphs import graph_of

LINE = flow.placement("cpu", [0, 1, 2, 3])
GRID = flow.placement("cpu", [[0, 1], [2, 3]])
S0, S1, B, P = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum


def traced(fn, x, kind):
    """Return the result of a function inside a traced program on a tensor."""
    if kind == "graph":
        return graph_of(fn)(x)
    return flow.compile(fn)(x) if kind == "compile" else flow.func.compile_function(fn)(x)


def grid(sbp=(S0, S1)):
    return flow.arange(16.0, dtype=flow.float32).reshape(4, 4).to_global(GRID, sbp)


@pytest.mark.parametrize("kind", ["graph", "compile", "func"])
def test_known_are_arguments_results_of_to_global_and_new_tensors(kind):
    seen = {}

    def fn(x):
        moved = (x * 2).to_global(sbp=[B, S0])
        made = flow.ones(4, 4, placement=x.placement, sbp=[P, B])
        seen.update(x=x.sbp, moved=moved.sbp, made=made.sbp, detached=moved.detach().sbp, like=flow.zeros_like(x).sbp)
        seen.update(new=x.new_ones(3).sbp, tensor=flow.tensor([1.0, 2.0], placement=GRID, sbp=[S0, B]).sbp)
        seen.update(places={t.placement for t in (x, moved, made, x * 2)}, kinds=(x.is_global, (x * 2).is_local))
        return moved + made

    traced(fn, grid(), kind)
    assert seen == {
        "x": (S0, S1), "moved": (B, S0), "made": (P, B), "detached": (B, S0), "like": (S0, S1), "new": (S0, B),
        "tensor": (S0, B), "places": {GRID}, "kinds": (True, False),
    }  # fmt: skip


def test_known_are_parameters_and_buffers_also_in_equal_layers():
    """Layers of one shape and two layouts are traced each for itself, since they may ask."""

    class Layer(nn.Module):
        def __init__(self, sbp):
            super().__init__()
            self.weight = nn.Parameter(flow.ones(4, 4, placement=LINE, sbp=sbp))
            self.register_buffer("scale", flow.ones(4, placement=LINE, sbp=B))

        def forward(self, x):
            seen.append((self.weight.sbp, self.scale.sbp))
            return x @ (self.weight if self.weight.sbp == (S1,) else self.weight * 3) * self.scale

    def fn(model, x):
        seen.append(x.sbp)
        return model(x)

    seen = []
    model = nn.Sequential(Layer(S0), Layer(S1), Layer(S1), Layer(S0))
    x = flow.ones(2, 4, placement=LINE, sbp=B)
    got = graph_of(fn, model)(x)
    assert seen[0] == (B,)
    assert set(seen[1:]) == {((S0,), (B,)), ((S1,), (B,))}
    np.testing.assert_allclose(got.numpy(), model(x).numpy())


def test_equal_layers_see_the_sbp_of_their_own_arguments():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(flow.ones(4, placement=LINE, sbp=B))

        def forward(self, x):
            y = x * self.weight
            return y if x.sbp == (S0,) else y * 3

    layers = nn.ModuleList([Layer() for _ in range(4)])

    def fn(layers, x):
        for layer, sbp in zip(layers, (S0, S1, S0, B)):
            x = layer(x.to_global(sbp=sbp))
        return x

    x = flow.ones(4, 4, placement=LINE, sbp=S0)
    np.testing.assert_allclose(graph_of(fn, layers)(x).numpy(), fn(layers, x).numpy())


def test_what_is_known_inside_is_what_comes_out():
    seen = []

    def fn(x):
        outs = [x, x.to_global(sbp=[B, S0]), x.new_zeros(4, 2), flow.rand_like(x), flow.full_like(x, 2.0)]
        seen.extend(o.sbp for o in outs)
        return outs

    assert [o.sbp for o in graph_of(fn)(grid())] == seen


def test_what_the_plan_decides_is_printed_counted_and_compared_with_itself():
    seen = []

    def fn(x):
        y = x @ x
        seen.append(repr(y.sbp))
        assert len(y.sbp) == 2 and isinstance(y.sbp, tuple) and bool(y.sbp)
        assert y.sbp == y.sbp and y.sbp[0] == y.sbp[0] and y.sbp[0] in y.sbp and not y.sbp != y.detach().sbp
        assert copy.deepcopy(y.sbp) == y.sbp
        assert y.sbp != (S0,) and y.sbp != [S0, S1] and y.sbp[0] != "S0" and y.sbp is not None
        z = y.to_global(sbp=[y.sbp[0], B])  # what is known of it answers for itself
        assert z.sbp != (S0, S0) and (B, S1) != z.sbp and z.sbp[1] == B
        return z

    assert graph_of(fn)(grid()).sbp[1] == B
    assert seen == ["(decided by the plan, decided by the plan)"]


REQUESTED = {
    "equal": lambda y: y.sbp == (S0, S0),
    "equal from the left": lambda y: (S0, S0) == y.sbp,
    "unequal": lambda y: y.sbp != (S0, S0),
    "entry": lambda y: y.sbp[0] == B,
    "entry from the left": lambda y: B == y.sbp[0],
    "contains": lambda y: B in y.sbp,
    "of two tensors": lambda y: y.sbp == (y + 1).sbp,
    "is_split": lambda y: y.sbp[0].is_split,
    "key of a dict": lambda y: {(S0, S0): 1}[y.sbp],
    "get of a dict": lambda y: {(S0, S0): 1, S0: 2}.get(y.sbp[0]),
    "kept in a dict": lambda y: {y.sbp: 1},
    "set": lambda y: y.sbp in {(S0, S0), (B, B)},
    "zip": lambda y: all(a == b for a, b in zip(y.sbp, (S0, S0))),
}


@pytest.mark.parametrize("kind", ["graph", "compile", "func"])
def test_a_branch_on_what_the_plan_decides_is_an_error(kind):
    """It names the user's line and what to do."""
    for name, question in REQUESTED.items():
        with pytest.raises(
            SbpError,
            match=r"(?s)sbp.*inside a traced program \(at .*test_undecided.py:\d+\).*seen: .*float32\[4, 4\] on axis 0"
            r".*decided by the plan.*rule: .*handed on.*fix:  x = x.to_global\(sbp=",
        ):
            traced(lambda x: x if question(x @ x) else x, grid(), kind)  # noqa: B023
            pytest.fail(name)


HANDED_ON = {
    "sbp": lambda x, y: (x * 3).to_global(sbp=y.sbp),
    "placement and sbp": lambda x, y: (x * 3).to_global(placement=y.placement, sbp=y.sbp),
    "known to unknown": lambda x, y: y.to_global(sbp=x.sbp) * 3,
    "list": lambda x, y: x.to_global(sbp=[y.sbp[1], B]) * 3,
    "grad_sbp": lambda x, y: x.to_global(grad_sbp=y.sbp) * 3,
    "grad_sbp known": lambda x, y: x.to_global(grad_sbp=x.sbp) * 3,
    "grad_sbp of a list": lambda x, y: x.to_global(sbp=[B, B], grad_sbp=[y.sbp[0], B]) * 3,
    "new tensor": lambda x, y: flow.ones(4, 4, placement=y.placement, sbp=y.sbp) * x * 3,
    "random": lambda x, y: flow.rand(4, 4, placement=y.placement, sbp=(x * 2).sbp) * 0 + x * 3,
    "zeros_like": lambda x, y: flow.zeros_like(y) + x * 3,
    "to": lambda x, y: (x * 3).to(y),
    "placement check": lambda x, y: (x if x.placement == y.placement else None) * 3,
}


@pytest.mark.parametrize("case", HANDED_ON)
def test_what_the_plan_decides_is_handed_on(case):
    """Values and gradients are those of eager code, under whatever layout."""

    def fn(x):
        out = HANDED_ON[case](x, x @ x)
        (out * out).sum().backward()
        return out, x.grad

    def leaf():
        return grid().requires_grad_()

    want = fn(leaf())
    got = graph_of(fn)(leaf())
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_grad_sbp_alone_pins_the_gradient():
    """It moves nothing on the way there."""

    def fn(x):
        assert x.to_global(grad_sbp=[B, B]).sbp == x.sbp
        (x * 2).to_global(grad_sbp=[B, B]).sum().backward()
        return x.grad

    for run in (fn, graph_of(fn)):
        got = run(grid().requires_grad_())
        np.testing.assert_array_equal(got.numpy(), np.full((4, 4), 2.0))


def test_an_sbp_that_left_its_program_stands_for_nothing():
    kept = []
    graph_of(lambda x: (kept.append((x @ x).sbp), x)[1])(grid())
    for use in (lambda: grid().to_global(sbp=kept[0]), lambda: flow.ones(4, 4, placement=GRID, sbp=kept[0])):
        with pytest.raises(SbpError, match=r"(?s)sbp=\(decided by the plan.*seen: .*rule: .*fix:  return the tensor"):
            use()
    with pytest.raises(SbpError, match="inside a traced program"):
        assert kept[0] == (S0, S0)


def test_a_part_of_a_value_under_vmap_has_no_known_sbp():
    seen = []
    flow.func.vmap(lambda x: (seen.append((x.is_global, repr(x.sbp))), x * 2)[1])(
        flow.ones(4, 4, placement=LINE, sbp=S0)
    )
    assert seen == [(True, "(decided by the plan,)")]
