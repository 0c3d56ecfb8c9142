"""What a recorded op saves, how its errors read, and that the short ways agree with the long one."""

import jax
import numpy as np
import pytest

import sbpjax
from sbpjax._core.ops import arithmetic
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.scalars import scalar_array

F = sbpjax.nn.functional


def _leaf(*shape):
    return sbpjax.ones(*shape, requires_grad=True)


SAVED = {
    "add": (lambda a, b: a + b, 0),
    "sub number": (lambda a, b: a - 2.0, 0),
    "mul both": (lambda a, b: a * b, 2),
    "mul one": (lambda a, b: a * b.detach(), 1),
    "mul number": (lambda a, b: a * 3.0, 1),
    "neg": (lambda a, b: -a, 0),
    "sum": (lambda a, b: a.sum(), 0),
    "mean": (lambda a, b: a.mean(1), 0),
    "transpose": (lambda a, b: a.t(), 0),
    "view": (lambda a, b: a.view(-1), 0),
    "expand": (lambda a, b: a[:1].expand(4, 4), 0),
    "exp": (lambda a, b: a.exp(), 1),
    "relu": (lambda a, b: a.relu(), 1),
    "matmul": (lambda a, b: a @ b, 2),
    "matmul by constant": (lambda a, b: a @ b.detach(), 1),
    "linear": (lambda a, b: F.linear(a, b, sbpjax.ones(4, requires_grad=True)), 2),
    "cat": (lambda a, b: sbpjax.cat([a, b]), 0),
    "softmax": (lambda a, b: a.softmax(1), 1),
    "dropout": (lambda a, b: F.dropout(a, 0.5), 1),
    "cumsum": (lambda a, b: a.cumsum(0), 0),
    "to": (lambda a, b: a.double(), 0),
}


@pytest.mark.parametrize("op, count", SAVED.values(), ids=SAVED.keys())
@pytest.mark.parametrize("where", ["local", "global"])
def test_saves_only_what_backward_reads(op, count, where):
    a, b = _leaf(4, 4), _leaf(4, 4)
    if where == "global":
        place = sbpjax.placement("cpu", [0, 1])
        a, b = (sbpjax.ones(4, 4, placement=place, sbp="B").requires_grad_() for _ in range(2))
        if op is SAVED["linear"][0]:
            op = lambda a, b: F.linear(a, b)  # noqa: E731
    assert len(op(a, b).grad_fn.saved) == count


def test_nothing_is_recorded_without_need():
    a = sbpjax.ones(3)
    assert (a * 2).grad_fn is None
    with sbpjax.no_grad():
        assert (_leaf(3) * 2).grad_fn is None
    assert (_leaf(3) > 0).grad_fn is None and _leaf(3).argmax().grad_fn is None


def test_saved_memory_goes_with_the_graph():
    import weakref

    a = _leaf(100)
    h = a * 2
    y = (h * h).sum()
    ref = weakref.ref(h)
    del h
    assert ref() is None  # the tape holds arrays, not handles
    y.backward()
    assert y.grad_fn.next_functions[0][0].saved == "freed"


@pytest.mark.parametrize("shape", [(2, 3), (3,), (1, 3), ()])
def test_short_and_long_ways_agree(shape):
    a, b = sbpjax.rand(2, 3, requires_grad=True), sbpjax.rand(*shape, requires_grad=True)
    for way in (dispatch.binary, lambda op, x, y: dispatch.run(op, (x, y))):
        a.grad = b.grad = None
        out = way(op_of(arithmetic.div), a, b)
        out.sum().backward()
        found = [out.detach().numpy(), a.grad.numpy(), b.grad.numpy()]
        if way is dispatch.binary:
            want = found
    for f, w in zip(found, want):
        np.testing.assert_array_equal(f, w)


def test_numbers_keep_their_sign_and_kind():
    x = sbpjax.ones(2)
    assert np.signbit((x * -0.0).numpy()).all() and not np.signbit((x * 0.0).numpy()).any()
    assert (sbpjax.tensor([1, 2]) * 2).dtype == sbpjax.int64 and (sbpjax.tensor([1, 2]) * 2.0).dtype == sbpjax.float32
    assert (sbpjax.tensor([1, 2]) ** 2).dtype == sbpjax.int64 and (sbpjax.tensor([1, 2]) ** 2.0).dtype == sbpjax.float32
    assert (x + float("nan")).isnan().all() and (x * True).dtype == sbpjax.float32


def test_a_number_first_met_in_a_trace_outlives_it():
    value = 40961.125
    jax.make_jaxpr(lambda x: scalar_array(value) + x)(1.0)
    assert float(scalar_array(value)) == value


def test_errors_have_four_parts_and_the_users_line():
    with pytest.raises(RuntimeError) as caught:
        sbpjax.ones(2, 3) + sbpjax.ones(4)
    text = str(caught.value)
    assert "test_dispatch.py:" in text.split("\n")[0]
    assert [line.strip().split(":")[0] for line in text.split("\n")[1:]] == ["seen", "rule", "fix"]
    assert "float32[2, 3]" in text and "float32[4]" in text


def test_failed_ops_change_nothing():
    a = _leaf(2, 3)
    h = a * 1
    version, node = h._version, h.grad_fn
    for bad in (lambda: h.add_(sbpjax.ones(4)), lambda: h.mul_(sbpjax.ones(5, 2, 3)), lambda: h.__setitem__(9, 1.0)):
        with pytest.raises((RuntimeError, IndexError)):
            bad()
    assert h._version == version and h.grad_fn is node and h.tolist() == [[1.0] * 3] * 2
