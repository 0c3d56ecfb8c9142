"""`autocast`: the dtypes and values that PyTorch gives, op by op; nesting, caching, gradients, decorators."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import sbpjax as flow
from sbpjax import amp
from sbpjax._core.tensor.amp.lists import ACCELERATOR, CPU

# Both sides round to bfloat16 (8 bits) at the same places, in sums of at most 50 terms: two roundings apart.
BF16_RTOL, BF16_ATOL = 2.0**-6, 2.0**-6

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


def _positive(*shape):
    return np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape).astype(np.float32)


def _signed(*shape):
    return np.sin(np.arange(1, 1 + int(np.prod(shape)))).reshape(shape).astype(np.float32)


_INDEX = np.array([0, 2], np.int64)
_CLASSES = np.array([0, 2, 1], np.int64)

# op → (float inputs, call(library, functional, inputs, integer)); `library` is torch or sbpjax.
PROBES = {
    "matmul": ([_signed(3, 4), _signed(4, 2)], lambda t, f, x, i: t.matmul(*x)),
    "mm": ([_signed(3, 4), _signed(4, 2)], lambda t, f, x, i: t.mm(*x)),
    "bmm": ([_signed(2, 3, 4), _signed(2, 4, 2)], lambda t, f, x, i: t.bmm(*x)),
    "mv": ([_signed(3, 4), _signed(4)], lambda t, f, x, i: t.mv(*x)),
    "dot": ([_signed(4), _signed(4)], lambda t, f, x, i: t.dot(*x)),
    "addmm": ([_signed(3, 2), _signed(3, 4), _signed(4, 2)], lambda t, f, x, i: t.addmm(*x)),
    "addmv": ([_signed(3), _signed(3, 4), _signed(4)], lambda t, f, x, i: t.addmv(*x)),
    "addr": ([_signed(3, 4), _signed(3), _signed(4)], lambda t, f, x, i: t.addr(*x)),
    "addbmm": ([_signed(3, 2), _signed(2, 3, 4), _signed(2, 4, 2)], lambda t, f, x, i: t.addbmm(*x)),
    "baddbmm": ([_signed(2, 3, 2), _signed(2, 3, 4), _signed(2, 4, 2)], lambda t, f, x, i: t.baddbmm(*x)),
    "linear": ([_signed(3, 4), _signed(2, 4), _signed(2)], lambda t, f, x, i: f.linear(*x)),
    "bilinear": ([_signed(3, 4), _signed(3, 2), _signed(5, 4, 2)], lambda t, f, x, i: f.bilinear(*x)),
    "einsum": ([_signed(3, 4), _signed(4, 2)], lambda t, f, x, i: t.einsum("ij,jk->ik", *x)),
    "tensordot": ([_signed(3, 4), _signed(4, 2)], lambda t, f, x, i: t.tensordot(*x, dims=1)),
    "conv1d": ([_signed(2, 3, 8), _signed(4, 3, 3), _signed(4)], lambda t, f, x, i: f.conv1d(*x)),
    "conv2d": ([_signed(2, 3, 6, 6), _signed(4, 3, 3, 3), _signed(4)], lambda t, f, x, i: f.conv2d(*x)),
    "conv3d": ([_signed(1, 2, 4, 4, 4), _signed(3, 2, 2, 2, 2)], lambda t, f, x, i: f.conv3d(*x)),
    "conv_transpose1d": ([_signed(2, 3, 8), _signed(3, 4, 3)], lambda t, f, x, i: f.conv_transpose1d(*x)),
    "conv_transpose2d": ([_signed(2, 3, 5, 5), _signed(3, 4, 3, 3)], lambda t, f, x, i: f.conv_transpose2d(*x)),
    "conv_transpose3d": ([_signed(1, 2, 3, 3, 3), _signed(2, 3, 2, 2, 2)], lambda t, f, x, i: f.conv_transpose3d(*x)),
    "scaled_dot_product_attention": (
        [_signed(1, 2, 4, 8), _signed(1, 2, 4, 8), _signed(1, 2, 4, 8)],
        lambda t, f, x, i: f.scaled_dot_product_attention(*x),
    ),
    "prelu": ([_signed(3, 4), _positive(1)], lambda t, f, x, i: f.prelu(*x)),
    "cat": ([_signed(3, 4), _signed(2, 4)], lambda t, f, x, i: t.cat(x)),
    "stack": ([_signed(3, 4), _signed(3, 4)], lambda t, f, x, i: t.stack(x)),
    "index_copy": ([_signed(3, 4), _signed(2, 4)], lambda t, f, x, i: t.index_copy(x[0], 0, i(_INDEX), x[1])),
    "prod": ([_positive(3, 4)], lambda t, f, x, i: t.prod(x[0])),
    "quantile": ([_positive(3, 4)], lambda t, f, x, i: t.quantile(x[0], 0.5)),
    "trace": ([_signed(3, 3)], lambda t, f, x, i: t.trace(x[0])),
    "avg_pool3d": ([_signed(1, 2, 4, 4, 4)], lambda t, f, x, i: f.avg_pool3d(x[0], 2)),
    "max_pool3d": ([_signed(1, 2, 4, 4, 4)], lambda t, f, x, i: f.max_pool3d(x[0], 2)),
    "adaptive_max_pool3d": ([_signed(1, 2, 4, 4, 4)], lambda t, f, x, i: f.adaptive_max_pool3d(x[0], 2)),
    "adaptive_avg_pool3d": ([_signed(1, 2, 4, 4, 4)], lambda t, f, x, i: f.adaptive_avg_pool3d(x[0], 2)),
    "binary_cross_entropy": ([_positive(3, 4), _positive(3, 4)], lambda t, f, x, i: f.binary_cross_entropy(*x)),
    "binary_cross_entropy_with_logits": (
        [_signed(3, 4), _positive(3, 4)],
        lambda t, f, x, i: f.binary_cross_entropy_with_logits(*x),
    ),
    "cross_entropy": ([_signed(3, 4)], lambda t, f, x, i: f.cross_entropy(x[0], i(_CLASSES))),
    "nll_loss": ([_signed(3, 4)], lambda t, f, x, i: f.nll_loss(x[0], i(_CLASSES))),
    "mse_loss": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.mse_loss(*x)),
    "l1_loss": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.l1_loss(*x)),
    "smooth_l1_loss": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.smooth_l1_loss(*x)),
    "huber_loss": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.huber_loss(*x)),
    "kl_div": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.kl_div(*x, reduction="sum")),
    "poisson_nll_loss": (
        [_signed(3, 4), _positive(3, 4)],
        lambda t, f, x, i: f.poisson_nll_loss(*x, log_input=True, full=False, eps=1e-8, reduction="mean"),
    ),
    "soft_margin_loss": ([_signed(3, 4), _signed(3, 4)], lambda t, f, x, i: f.soft_margin_loss(*x)),
    "hinge_embedding_loss": (
        [_signed(3, 4), _signed(3, 4)],
        lambda t, f, x, i: f.hinge_embedding_loss(x[0], x[1].sign()),
    ),
    "margin_ranking_loss": ([_signed(3), _positive(3), _signed(3)], lambda t, f, x, i: f.margin_ranking_loss(*x)),
    "cosine_embedding_loss": (
        [_signed(3, 4), _positive(3, 4)],
        lambda t, f, x, i: f.cosine_embedding_loss(*x, i(np.array([1, -1, 1], np.int64))),
    ),
    "triplet_margin_loss": (
        [_signed(3, 4), _positive(3, 4), _positive(3, 4)[::-1].copy()],
        lambda t, f, x, i: f.triplet_margin_loss(*x),
    ),
    "softmax": ([_signed(3, 4)], lambda t, f, x, i: f.softmax(x[0], dim=-1)),
    "log_softmax": ([_signed(3, 4)], lambda t, f, x, i: f.log_softmax(x[0], dim=-1)),
    "softmin": ([_signed(3, 4)], lambda t, f, x, i: f.softmin(x[0], dim=-1)),
    "softplus": ([_signed(3, 4)], lambda t, f, x, i: f.softplus(x[0])),
    "layer_norm": ([_signed(3, 4), _positive(4), _signed(4)], lambda t, f, x, i: f.layer_norm(x[0], (4,), x[1], x[2])),
    "group_norm": ([_signed(2, 4, 3)], lambda t, f, x, i: f.group_norm(x[0], 2)),
    "rms_norm": ([_signed(3, 4)], lambda t, f, x, i: f.rms_norm(x[0], (4,))),
    "batch_norm": ([_signed(3, 4)], lambda t, f, x, i: f.batch_norm(x[0], None, None, training=True)),
    "normalize": ([_signed(3, 4)], lambda t, f, x, i: f.normalize(x[0])),
    "cosine_similarity": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.cosine_similarity(*x)),
    "pairwise_distance": ([_signed(3, 4), _positive(3, 4)], lambda t, f, x, i: f.pairwise_distance(*x)),
    "norm": ([_signed(3, 4)], lambda t, f, x, i: t.norm(x[0])),
    "pow": ([_positive(3, 4), _signed(3, 4)], lambda t, f, x, i: t.pow(*x)),
    "pow_scalar": ([_positive(3, 4)], lambda t, f, x, i: x[0] ** 3),
    "rpow_scalar": ([_positive(3, 4)], lambda t, f, x, i: 2.0 ** x[0]),
    "sum": ([_signed(3, 4)], lambda t, f, x, i: t.sum(x[0])),
    "cumsum": ([_signed(3, 4)], lambda t, f, x, i: t.cumsum(x[0], 0)),
    "cumprod": ([_positive(3, 4)], lambda t, f, x, i: t.cumprod(x[0], 0)),
    "logsumexp": ([_signed(3, 4)], lambda t, f, x, i: t.logsumexp(x[0], 0)),
    "addcmul": ([_signed(3), _signed(3), _positive(3)], lambda t, f, x, i: t.addcmul(*x)),
    "addcdiv": ([_signed(3), _signed(3), _positive(3)], lambda t, f, x, i: t.addcdiv(*x)),
    "atan2": ([_signed(3), _positive(3)], lambda t, f, x, i: t.atan2(*x)),
    "cross": ([_signed(3, 3), _positive(3, 3)], lambda t, f, x, i: t.cross(*x, dim=1)),
    "scatter_add": ([_signed(3, 4), _signed(2, 4)], lambda t, f, x, i: t.scatter_add(
        x[0], 0, i(np.array([[0, 1, 2, 0], [2, 1, 0, 1]], np.int64)), x[1])),
    "where": ([_signed(3), _positive(3)], lambda t, f, x, i: t.where(x[0] > 0, *x)),
    "add": ([_signed(3), _positive(3)], lambda t, f, x, i: x[0] + x[1]),
    "mean": ([_signed(3, 4)], lambda t, f, x, i: t.mean(x[0])),
    "relu": ([_signed(3, 4)], lambda t, f, x, i: t.relu(x[0])),
    "gelu": ([_signed(3, 4)], lambda t, f, x, i: f.gelu(x[0])),
    **{
        name: ([_positive(3, 4)], lambda t, f, x, i, name=name: getattr(t, name)(x[0]))
        for name in "acos asin cosh sinh tan exp expm1 log log10 log1p log2 reciprocal rsqrt erfinv".split()
    },
}  # fmt: skip

# PyTorch's name of an op on its lists → the name here, where they differ.
_RENAMED = {"cross_entropy_loss": "cross_entropy", "nll_loss2d": "nll_loss"}


def _run(name, dtypes, library, context, real=True):
    arrays, call = PROBES[name]
    kinds = [dtypes[k % len(dtypes)] for k in range(len(arrays))]
    if library is torch and not real:  # a CUDA device need not be there for its dtypes

        def integer(a):
            return torch.empty(a.shape, dtype=torch.int64, device="cuda")

        with context:
            xs = [torch.empty(a.shape, dtype=_TYPES[k], device="cuda") for a, k in zip(arrays, kinds, strict=True)]
            out = call(torch, torch.nn.functional, xs, integer)
        return out[0] if isinstance(out, tuple) else out
    if library is torch:
        xs = [torch.tensor(a).to(_TYPES[k]) for a, k in zip(arrays, kinds, strict=True)]
        integer = torch.tensor
    else:
        xs = [flow.tensor(a).to(getattr(flow, k)) for a, k in zip(arrays, kinds, strict=True)]
        integer = flow.tensor
    with context:
        out = call(library, library.nn.functional, xs, integer)
    return out[0] if isinstance(out, tuple) else out


def _name(dtype):
    return str(dtype).rpartition(".")[2]


def _on_torchs_lists(key):
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {n.partition("::")[2].partition(".")[0] for n in names if n.startswith("aten::")}


@pytest.mark.parametrize("key", ["AutocastCPU", "AutocastCUDA"])
def test_every_op_on_torchs_lists_that_exists_is_probed(key):
    found = {_RENAMED.get(n, n) for n in _on_torchs_lists(key)}
    here = {n for n in found if amp.lists.is_op(n) and (hasattr(flow, n) or hasattr(flow.nn.functional, n))}
    assert len(here) >= 35
    assert here <= PROBES.keys(), sorted(here - PROBES.keys())


@pytest.mark.parametrize("lists", [CPU, ACCELERATOR])
def test_every_op_on_a_list_exists(lists):
    assert all(amp.lists.is_op(name) for name in lists.policies)
    assert len(lists.policies) == len(lists.lower) + len(lists.float32) + len(lists.widest)


@pytest.mark.parametrize("dtypes", [("float32",), ("bfloat16",), ("bfloat16", "float32"), ("float64",)], ids="-".join)
@pytest.mark.parametrize("name", PROBES)
def test_cpu_lists_are_those_of_torch(name, dtypes):
    try:
        want = _run(name, dtypes, torch, torch.autocast("cpu", torch.bfloat16))
    except RuntimeError as error:
        assert dtypes != ("float32",), error
        pytest.skip(f"PyTorch's CPU kernels lack it: {str(error).splitlines()[0]}")
    got = _run(name, dtypes, flow, flow.autocast("cpu", flow.bfloat16))
    assert got.dtype.name == _name(want.dtype)
    np.testing.assert_allclose(
        got.to(flow.float64).numpy(), want.double().numpy(), rtol=BF16_RTOL, atol=BF16_ATOL, err_msg=name
    )


@pytest.mark.parametrize("dtypes", [("float32",), ("bfloat16",), ("bfloat16", "float32")], ids="-".join)
@pytest.mark.parametrize("name", PROBES)
def test_accelerator_lists_are_those_of_torch(name, dtypes):
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        want = _run(name, dtypes, torch, FakeTensorMode(), real=False)
    except RuntimeError as error:
        assert dtypes != ("float32",) or "unsafe to autocast" in str(error), error
        pytest.skip(f"PyTorch refuses it: {str(error).splitlines()[0]}")
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])
    if name == "index_copy" and len(dtypes) > 1:  # PyTorch's kernels refuse it; its tensors without data do not tell
        with pytest.raises(RuntimeError, match="all inputs have the same dtype"):
            _run(name, dtypes, flow, flow.autocast("cuda", flow.bfloat16))
        return
    got = _run(name, dtypes, flow, flow.autocast("cuda", flow.bfloat16))
    assert got.dtype.name == _name(want.dtype)


# -- the context -------------------------------------------------------------------------------------------------------


def _weight(*shape):
    return flow.tensor(_signed(*shape), requires_grad=True)


def test_gradients_arrive_in_the_dtype_of_the_parameter_and_are_those_of_torch():
    x, w, b = _signed(6, 4), _signed(3, 4), _signed(3)
    classes = np.array([0, 1, 2, 0, 1, 2])

    def grads(library, functional, context):
        p, q = (library.tensor(a, requires_grad=True) for a in (w, b))
        with context:
            h = functional.linear(library.tensor(x), p, q)
            loss = functional.cross_entropy(functional.relu(h), library.tensor(classes))
        loss.backward()
        return loss, p.grad, q.grad

    want = grads(torch, torch.nn.functional, torch.autocast("cpu", torch.bfloat16))
    got = grads(flow, flow.nn.functional, flow.autocast("cpu", flow.bfloat16))
    for a, e in zip(got, want, strict=True):
        assert a.dtype == flow.float32 and e.dtype == torch.float32
        np.testing.assert_allclose(a.detach().numpy(), e.detach().numpy(), rtol=BF16_RTOL, atol=BF16_ATOL)


def test_blocks_nest_and_end():
    x = _weight(3, 3)
    assert not flow.is_autocast_enabled()
    with flow.autocast("cpu", dtype=flow.bfloat16):
        assert flow.is_autocast_enabled() and flow.is_autocast_enabled("cpu") and not flow.is_autocast_enabled("cuda")
        assert (x @ x).dtype == flow.bfloat16
        with flow.autocast("cpu", enabled=False):
            assert not flow.is_autocast_enabled()
            assert (x @ x).dtype == flow.float32
            with flow.autocast("cpu", dtype=flow.float16):
                assert flow.get_autocast_dtype("cpu") == flow.float16
                assert (x @ x).dtype == flow.float16
        assert (x @ x).dtype == flow.bfloat16
    assert (x @ x).dtype == flow.float32
    with pytest.raises(KeyError), flow.autocast("cpu"):
        raise KeyError
    assert not flow.is_autocast_enabled()


def test_default_dtypes_are_those_of_torch():
    for device_type in ("cpu", "cuda", "xpu"):
        assert flow.get_autocast_dtype(device_type).name == _name(torch.get_autocast_dtype(device_type))


def test_a_context_may_be_entered_twice_and_decorates():
    context = flow.autocast("cpu", dtype=flow.bfloat16)

    @context
    def product(x):
        with context:
            return x @ x

    assert product(_weight(2, 2)).dtype == flow.bfloat16
    assert not flow.is_autocast_enabled()


def _casts(monkeypatch):
    from sbpjax._core.tensor.amp import casting

    count, plain = [], casting._cast
    monkeypatch.setattr(casting, "_cast", lambda x, dtype: count.append(x) or plain(x, dtype))
    return count


@pytest.mark.parametrize(("keep", "times"), [(True, 1), (False, 3)])
def test_a_weight_is_cast_once_while_the_outermost_block_lasts(monkeypatch, keep, times):
    count = _casts(monkeypatch)
    w, x = _weight(4, 4), flow.ones(2, 4)
    with flow.autocast("cpu", dtype=flow.bfloat16, cache_enabled=keep):
        assert amp.is_autocast_cache_enabled() == keep
        for _ in range(2):
            x = x @ w
        with flow.autocast("cpu", dtype=flow.bfloat16, cache_enabled=keep):
            x = x @ w
    assert sum(t is w for t in count) == times
    with flow.autocast("cpu", dtype=flow.bfloat16):
        x @ w
    assert sum(t is w for t in count) == times + 1


def test_a_kept_cast_follows_the_weight():
    w, x = _weight(2, 2), flow.ones(2, 2)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        with flow.no_grad():
            assert not (x @ w).requires_grad
            w.zero_()
            assert (x @ w).abs().sum().item() == 0
        assert (x @ w).requires_grad  # not the cast that no_grad made
        with flow.no_grad():
            w.fill_(1.0)
        first, second = (x @ w).sum(), (x @ w * 2).sum()
    first.backward()
    second.backward()  # through the same kept cast, which nothing frees
    np.testing.assert_array_equal(w.grad.numpy(), np.full((2, 2), 6.0, np.float32))


def test_the_cast_of_a_view_that_was_written_has_the_gradient_of_the_write():
    for lib, context in ((flow, amp.autocast("cpu", flow.bfloat16)), (torch, torch.autocast("cpu", torch.bfloat16))):
        x = lib.ones(2, 3, requires_grad=True)
        y = x * 1
        view = y[:1]
        y.mul_(2)
        with context:
            (view @ lib.ones(3, 3)).float().sum().backward()
        assert x.grad.tolist() == [[6, 6, 6], [0, 0, 0]]


def test_what_names_a_dtype_keeps_it_and_other_kinds_are_left_alone():
    x = flow.tensor(_signed(3, 4)).to(flow.bfloat16)
    with flow.autocast("cuda", dtype=flow.bfloat16):
        assert flow.softmax(x, 0).dtype == flow.float32
        assert flow.nn.functional.softmax(x, 0, dtype=flow.bfloat16).dtype == flow.bfloat16
        assert flow.sum(x, dtype=flow.bfloat16).dtype == flow.bfloat16
        assert flow.sum(flow.ones(3, dtype=flow.int32)).dtype == flow.int64
        assert flow.ones(2, 2, dtype=flow.float64).exp().dtype == flow.float64


def test_an_op_in_place_keeps_the_precision_of_what_it_writes():
    x, a, b = (flow.tensor(_signed(3, 3)) for _ in range(3))
    exact = flow.addmm(x, a, b)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        x.addmm_(a, b)
    np.testing.assert_array_equal(x.numpy(), exact.numpy())


def test_lists_may_be_changed_for_a_block():
    lists = ACCELERATOR.changed(lower=["softmax"], float32=["matmul"], as_it_comes=["linear"])
    x = flow.tensor(_signed(3, 3)).to(flow.bfloat16)
    y = flow.tensor(_signed(3, 3))
    with flow.autocast("cuda", dtype=flow.bfloat16, lists=lists):
        assert flow.softmax(y, 0).dtype == flow.bfloat16
        assert (x @ x).dtype == flow.float32
        assert flow.nn.functional.linear(y, y).dtype == flow.float32
    assert ACCELERATOR.policies["softmax"] == "float32"
    assert lists == ACCELERATOR.changed(lower=["softmax"], float32=["matmul"], as_it_comes=["linear"])
    with pytest.raises(ValueError, match="no op of this name"):
        CPU.changed(lower=["sofmax"])
    with pytest.raises(ValueError, match="named 2 times"):
        CPU.changed(lower=["softmax"], float32=["softmax"])


@pytest.mark.parametrize("sbp", ["split", "broadcast"])
def test_global_tensors_are_cast_alike(sbp):
    p = flow.placement("cpu", [0, 1, 2, 3])
    w = _weight(4, 4)
    there = flow.tensor(_signed(4, 4)).to_global(p, flow.sbp.split(0) if sbp == "split" else flow.sbp.broadcast)
    there.requires_grad_()
    x = flow.tensor(_signed(8, 4))
    with flow.autocast("cpu", dtype=flow.bfloat16):
        near = (x @ w).relu()
        far = (x.to_global(p, flow.sbp.split(0)) @ there).relu()
        near.sum().backward()
        far.sum().backward()
    assert far.dtype == near.dtype == flow.bfloat16
    assert there.grad.dtype == flow.float32 and there.grad.sbp == there.sbp
    np.testing.assert_allclose(far.to(flow.float32).numpy(), near.to(flow.float32).numpy(), BF16_RTOL, BF16_ATOL)
    np.testing.assert_allclose(there.grad.numpy(), w.grad.numpy(), BF16_RTOL, BF16_ATOL)


def test_a_checkpoint_computes_again_as_at_first():
    x, w = _weight(3, 4), _weight(4, 4)

    def layer(x):
        return (x @ w).relu() @ w

    with flow.autocast("cpu", dtype=flow.bfloat16):
        plain = layer(x).sum()
        again = flow.autograd.checkpoint(layer, x).sum()
    plain.backward()
    want = x.grad.numpy(), w.grad.numpy()
    x.grad = w.grad = None
    again.backward()
    for got, expected in zip((x.grad, w.grad), want, strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)


class _Product(flow.autograd.Function):
    seen: list = []

    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=flow.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        _Product.seen.append((x.dtype, flow.is_autocast_enabled()))
        return x @ w

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        _Product.seen.append((grad.dtype, flow.is_autocast_enabled()))
        return grad @ w.T, x.T @ grad


def test_custom_functions_say_how_they_run():
    _Product.seen.clear()
    x, w = _weight(2, 3), _weight(3, 2)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        out = _Product.apply(x.to(flow.bfloat16), w)
        assert out.dtype == flow.float32
        out.sum().backward()
    assert _Product.seen == [(flow.float32, False), (flow.float32, False)]
    assert x.grad.dtype == w.grad.dtype == flow.float32


def test_errors():
    with pytest.raises(RuntimeError, match="knows the device types"):
        flow.autocast("toaster")
    with pytest.raises(TypeError, match="bfloat16, float16 or fp8"):
        flow.autocast("cpu", dtype=flow.int32)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        flow.autocast(flow.bfloat16)
