"""Calls in OneFlow's form give what OneFlow 0.9 gave for them, local and on 2 and 4 devices."""

import numpy as np
import pytest

import sbpjax as flow

A = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
B = [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]
PLACES = [None, (2, "B"), (2, "S0"), (2, "S1"), (4, "S0"), (4, "P"), ((2, 2), "S0,S1")]


def ranged(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture(params=PLACES, ids=str)
def put(request):
    """Return a function from data to a tensor, local or in some layout."""
    if request.param is None:
        return flow.tensor
    size, sbp = request.param
    ranks = np.arange(np.prod(size)).reshape(size).tolist()
    placement = flow.placement("cpu", ranks)
    layout = [
        flow.sbp.split(int(s[1])) if s[0] == "S" else {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}[s]
        for s in sbp.split(",")
    ]

    def make(data):
        whole = [flow.sbp.broadcast if s.is_split and s.code >= np.ndim(data) else s for s in layout]
        integers = np.asarray(data).dtype.kind == "i"
        whole = [flow.sbp.broadcast if integers and s == flow.sbp.partial_sum else s for s in whole]
        return flow.tensor(data, placement=placement, sbp=whole)

    return make


CALLS = {  # as recorded
    "matmul": (lambda t: flow.matmul(t(A), t(B), transpose_b=True, alpha=2.0), [[14.0, 10.0], [32.0, 22.0]]),
    "matmul_a": (lambda t: flow.matmul(t(A), t(B), True), [[1.0, 4.0, 6.0], [2.0, 5.0, 9.0], [3.0, 6.0, 12.0]]),
    "bmm": (
        lambda t: flow.bmm(t(ranged(2, 2, 3)), t(ranged(2, 2, 3)), False, True, 2.0),
        [[[10.0, 28.0], [28.0, 100.0]], [[298.0, 424.0], [424.0, 604.0]]],
    ),
    "bmm_method": (
        lambda t: t(ranged(2, 2, 3)).bmm(t(ranged(2, 2, 3)), transpose_b=True),
        [[[5.0, 14.0], [14.0, 50.0]], [[149.0, 212.0], [212.0, 302.0]]],
    ),
    "add": (lambda t: flow.add(t(A), t(B), t(A)), [[3.0, 4.0, 8.0], [8.0, 11.0, 13.0]]),
    "add_4": (lambda t: flow.add(t(A), t(B), t(A), t(B)), [[4.0, 4.0, 10.0], [8.0, 12.0, 14.0]]),
    "add_list": (lambda t: flow.add([t(A), t(B), t(A)]), [[3.0, 4.0, 8.0], [8.0, 11.0, 13.0]]),
    "add_inputs": (lambda t: flow.add(inputs=[t(A), t(B)]), [[2.0, 2.0, 5.0], [4.0, 6.0, 7.0]]),
    "one_hot": (lambda t: flow.nn.functional.one_hot(t([0, 2]), 3, 5, -1), [[5, -1, -1], [-1, -1, 5]]),
    "one_hot_float": (lambda t: flow.nn.functional.one_hot(t([0, 2]), 3, 1.5, 0.5), [[1.5, 0.5, 0.5], [0.5, 0.5, 1.5]]),
    "nonzero": (lambda t: flow.nonzero(t(B), True), [[0, 0, 1, 1], [0, 2, 1, 2]]),
    "nonzero_method": (lambda t: t(B).nonzero(True), [[0, 0, 1, 1], [0, 2, 1, 2]]),
    "tensordot": (lambda t: flow.tensordot(t(np.ones((2, 1), np.float32)), t(ranged(3, 2)), dims=1), [[6.0, 9.0]] * 2),
    "tensordot_lists": (
        lambda t: flow.tensordot(t(ranged(2, 3)), t(np.ones((1, 2), np.float32)), dims=[[1], [0]]),
        [[3.0, 3.0], [12.0, 12.0]],
    ),
    "tensordot_2": (
        lambda t: flow.tensordot(t(ranged(2, 3, 4)), t(np.ones((1, 4, 2), np.float32)), dims=2),
        [[66.0, 66.0], [210.0, 210.0]],
    ),
    "masked_select_float": (lambda t: flow.masked_select(t(A), t(B)), [1.0, 3.0, 5.0, 6.0]),
    "masked_select_int": (lambda t: flow.masked_select(t(A), t([[1, 0, 2], [0, -1, 0]])), [1.0, 3.0, 5.0]),
    "masked_select_row": (lambda t: t(A).masked_select(t([1, 0, 2])), [1.0, 3.0, 4.0, 6.0]),
    "where_itself": (lambda t: (t(B) > 0).where(t(A), -t(A)), [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]]),
    "where_int": (lambda t: t([[1, 0, 2], [0, -1, 1]]).where(t(A), -t(A)), [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]]),
    "where_names": (lambda t: (t(B) > 0).where(x=t(A), y=-t(A)), [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]]),
    "where_function": (
        lambda t: flow.where(t([[1, 0, 2], [0, -1, 1]]), t(A), -t(A)),
        [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]],
    ),
    "softmax": (lambda t: flow.softmax(0 * t(ranged(2, 2, 2))), np.full((2, 2, 2), 0.5).tolist()),
    "relu": (lambda t: flow.relu(x=-t(A)), np.zeros((2, 3)).tolist()),
    "transpose": (lambda t: flow.transpose(t(A), perm=[1, 0]), [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name, put):
    call, expected = CALLS[name]
    found = call(put)
    parts = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(found, tuple) else [expected]
    for part, value in zip(parts, expected, strict=True):
        assert part.is_global == put([0.0]).is_global
        assert part.numpy().tolist() == value
        assert part.dtype == flow.tensor(value).dtype


@pytest.mark.parametrize(
    "call, value",
    [
        (lambda x: flow.mul(x, 2.0, inplace=True), [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]),
        (lambda x: flow.pow(x, 2.0, inplace=True), [[1.0, 4.0, 9.0], [16.0, 25.0, 36.0]]),
        (lambda x: flow.sub(x, flow.tensor(B), inplace=True), [[0.0, 2.0, 1.0], [4.0, 4.0, 5.0]]),
        (lambda x: flow.add(x, flow.tensor(B), inplace=True), [[2.0, 2.0, 5.0], [4.0, 6.0, 7.0]]),
        (lambda x: flow.add([x, flow.tensor(B)], inplace=True), [[2.0, 2.0, 5.0], [4.0, 6.0, 7.0]]),
        (lambda x: flow.fmod(x, 2.0, inplace=True), [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        (lambda x: flow.floor_divide(x, 2.0, inplace=True), [[0.0, 1.0, 1.0], [2.0, 2.0, 3.0]]),
        (lambda x: flow.relu(x, True), A),
        (lambda x: flow.nn.functional.hardshrink(x, lambd=2.0, inplace=True), [[0.0, 0.0, 3.0], [4.0, 5.0, 6.0]]),
        (lambda x: flow.softshrink(x, alpha=2.0, inplace=True), [[0.0, 0.0, 1.0], [2.0, 3.0, 4.0]]),
        (lambda x: flow.bernoulli(x, 1.0, inplace=True), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
    ],
)
def test_inplace(call, value):
    x = flow.tensor(A)
    assert call(x) is x
    assert x.tolist() == value


def test_gradients_of_the_new_forms():
    x, y = flow.tensor(A, requires_grad=True), flow.tensor(B, requires_grad=True)
    flow.matmul(x, y, transpose_b=True, alpha=2.0).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 6.0]] * 2
    x.grad = None
    flow.add(x, y, x).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
    z = flow.ones(2, 1, requires_grad=True)
    flow.tensordot(z, flow.tensor(ranged(3, 2)), dims=1).sum().backward()
    assert z.grad.tolist() == [[15.0], [15.0]]


def test_what_a_sum_of_many_does_not_take():
    x = flow.tensor(A)
    for wrong in (
        lambda: flow.add(x, x, x, alpha=2),
        lambda: flow.add(x, x, 1.0),
        lambda: flow.add(x),
        lambda: flow.add(),
    ):
        with pytest.raises(TypeError, match="fix:"):
            wrong()


@pytest.mark.parametrize("size", [None, 2, 4])
def test_clipping_by_the_number_of_gradients(size):
    """The 0-norm of two gradients, of which one is all zeros, is 1."""
    where = {} if size is None else {"placement": flow.placement("cpu", list(range(size))), "sbp": flow.sbp.split(0)}
    ps = [flow.nn.Parameter(flow.tensor([1.0, 2.0, 0.0], **where)), flow.nn.Parameter(flow.tensor([1.0], **where))]
    (ps[0] * flow.tensor([3.0, 4.0, 0.0], **where)).sum().backward()
    (ps[1] * 0).sum().backward()
    assert flow.nn.utils.clip_grad_norm_(ps, 1.0, norm_type=0.0).item() == 1.0
    assert np.allclose(ps[0].grad.numpy(), [2.999997, 3.999996, 0.0], rtol=1e-6)  # as recorded
    assert flow.nn.utils.clip_grad_norm_(ps[:1] + [flow.nn.Parameter(flow.ones(1))], 9.0, norm_type=0).item() == 1.0


def test_clipping_by_the_number_of_gradients_on_several_placements():
    ps = [
        flow.nn.Parameter(flow.ones(2)),
        flow.nn.Parameter(flow.ones(2, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)),
    ]
    for p in ps:
        p.sum().backward()
    assert flow.nn.utils.clip_grad_norm_(ps, 1.0, norm_type=0.0).item() == 2.0


def test_negative_seeds_are_random_ones():
    assert flow.nn.CoinFlip(4, -1, 1.0)().tolist() == [1, 1, 1, 1]
    assert flow.nn.CoinFlip(batch_size=2, random_seed=-1, probability=0.0)().tolist() == [0, 0]


def test_linear_on_a_device():
    layer = flow.nn.Linear(3, 2, device="cpu")
    assert layer.weight.device == flow.device("cpu") and layer(flow.ones(1, 3)).shape == (1, 2)
    assert flow.nn.Linear(3, 2, True, "cpu", flow.float64).weight.dtype == flow.float64
