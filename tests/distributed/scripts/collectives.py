"""Run by test_together.py once per rank: every collective against what NumPy computes from all ranks' inputs."""

import numpy as np

import sbpjax as flow
from sbpjax import distributed as dist
from sbpjax import errors
from sbpjax._core.runtime import collective_trace

R = dist.ReduceOp
rank, n = dist.get_rank(), dist.get_world_size()
rng = np.random.default_rng(0)


def inputs(*shape, dtype=np.float32):
    """Return what every rank holds: the same list on all ranks."""
    made = rng.normal(size=(n, *shape)) * 3
    return [a.astype(dtype) for a in made]


def same(x, want, tolerance=0.0):
    got = x.numpy()
    assert got.shape == np.shape(want), (got.shape, np.shape(want))
    if tolerance:
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        text = str(error)
        assert all(w in text for w in words) and "\n  fix:  " in text, text
        return
    raise AssertionError(f"no {kind.__name__}")


FOLD = {R.SUM: np.sum, R.MAX: np.max, R.MIN: np.min, R.PROD: np.prod, R.AVG: np.mean}
SUM_TOLERANCE = 1e-5


def test_reductions():
    for op, fold in FOLD.items():
        for shape in ((), (5,), (2, 3)):
            xs = inputs(*shape)
            x = flow.tensor(xs[rank])
            assert dist.all_reduce(x, op) is None
            same(x, fold(np.stack(xs), 0), SUM_TOLERANCE)
    xs = inputs(4, dtype=np.int32)
    for op, ufunc in ((R.BAND, np.bitwise_and), (R.BOR, np.bitwise_or), (R.BXOR, np.bitwise_xor)):
        x = flow.tensor(xs[rank])
        dist.all_reduce(x, op)
        same(x, ufunc.reduce(np.stack(xs)))
    flags = [np.arange(4) % (r + 2) == 0 for r in range(n)]
    for op, fold in ((R.SUM, np.any), (R.MAX, np.any), (R.MIN, np.all), (R.PROD, np.all)):
        x = flow.tensor(flags[rank])
        dist.all_reduce(x, op)
        same(x, fold(np.stack(flags), 0))
    xs = inputs(3)
    x = flow.tensor(xs[rank])
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    same(x, np.sum(xs, 0), SUM_TOLERANCE)
    a, b = flow.tensor([1.0 + rank]), flow.tensor([2.0 * rank, 1.0])
    dist.all_reduce_coalesced([a, b])
    same(a, np.float32([n + n * (n - 1) / 2]))
    same(b, np.float32([n * (n - 1), n]))
    x = flow.tensor(xs[rank])
    dist.reduce(x, dst=n - 1)
    same(x, np.sum(xs, 0) if rank == n - 1 else xs[rank], SUM_TOLERANCE if rank == n - 1 else 0.0)


def test_views_are_written_in_place():
    base = flow.zeros(2, 3)
    base[0] = rank + 1.0
    dist.all_reduce(base[0])
    same(base, np.array([[n * (n + 1) / 2] * 3, [0] * 3], np.float32))


def test_moves_are_exact():
    for dtype in (np.float32, np.float64, np.int64, np.uint8, np.bool_, np.complex64, np.float16):
        xs = [np.asarray(np.arange(6).reshape(2, 3) + 10 * r, dtype) for r in range(n)]
        if dtype == np.float32:
            xs[n - 1][0, 0] = np.nan
            xs[n - 1][1, 1] = -0.0
        x = flow.tensor(xs[rank])
        dist.broadcast(x, src=n - 1)
        same(x, xs[n - 1])
        assert x.numpy().tobytes() == xs[n - 1].tobytes()
        listed = [flow.empty(2, 3, dtype=x.dtype) for _ in range(n)]
        dist.all_gather(listed, flow.tensor(xs[rank]))
        for t, want in zip(listed, xs, strict=True):
            same(t, want)
    x = flow.tensor(xs[0]).bfloat16() * 0 + rank
    dist.broadcast(x, src=0)
    assert x.float().numpy().max() == 0
    xs = inputs(2, 3)
    joined, stacked = flow.empty(2 * n, 3), flow.empty(n, 2, 3)
    dist.all_gather_into_tensor(joined, flow.tensor(xs[rank]))
    dist.all_gather_into_tensor(stacked, flow.tensor(xs[rank]))
    same(joined, np.concatenate(xs))
    same(stacked, np.stack(xs))
    listed = [flow.empty(2, 3) for _ in range(n)] if rank == 0 else None
    dist.gather(flow.tensor(xs[rank]), listed, dst=0)
    if rank == 0:
        for t, want in zip(listed, xs, strict=True):
            same(t, want)
    x = flow.empty(2, 3)
    dist.scatter(x, [flow.tensor(a) for a in xs] if rank == 0 else None, src=0)
    same(x, xs[rank])


def test_scatters_and_exchanges():
    table = [inputs(2) for _ in range(n)]  # table[k][r]: what rank r sends to k
    out = flow.empty(2)
    dist.reduce_scatter(out, [flow.tensor(table[k][rank]) for k in range(n)])
    same(out, np.sum(table[rank], 0), SUM_TOLERANCE)
    dist.reduce_scatter(out, [flow.tensor(table[k][rank]) for k in range(n)], op=R.MAX)
    same(out, np.max(table[rank], 0))
    dist.reduce_scatter_tensor(out, flow.tensor(np.concatenate([table[k][rank] for k in range(n)])))
    same(out, np.sum(table[rank], 0), SUM_TOLERANCE)
    outs = [flow.empty(2) for _ in range(n)]
    dist.all_to_all(outs, [flow.tensor(table[k][rank]) for k in range(n)])
    for r in range(n):
        same(outs[r], table[rank][r])
    single = flow.empty(2 * n)
    dist.all_to_all_single(single, flow.tensor(np.concatenate([table[k][rank] for k in range(n)])))
    same(single, np.concatenate([table[rank][r] for r in range(n)]))


def test_point_to_point():
    if rank == 0:
        dist.send(flow.arange(3), dst=1)
    elif rank == 1:
        x = flow.zeros(3, dtype=flow.int64)
        assert dist.recv(x, src=0) == 0
        same(x, np.arange(3))
    ring = flow.zeros(2)
    ops = [
        dist.P2POp(dist.isend, flow.full((2,), float(rank)), (rank + 1) % n),
        dist.P2POp(dist.irecv, ring, (rank - 1) % n),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(ring, np.full(2, (rank - 1) % n, np.float32))
    if rank == 0:
        flow.comm.send(flow.ones(2, 2, dtype=flow.int32) * 7, 1)
    elif rank == 1:
        got = flow.comm.recv(0)
        assert got.dtype == flow.int32 and got.tolist() == [[7, 7], [7, 7]]


def test_objects():
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank, "text": "x" * (100 * rank)})
    assert found == [{"rank": r, "text": "x" * (100 * r)} for r in range(n)]
    shared = [rank, [rank]] if rank else ["a", {"b": 1}]
    dist.broadcast_object_list(shared, src=0)
    assert shared == ["a", {"b": 1}]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(n)] if rank == 1 else None, src=1)
    assert out == [f"for {rank}"]
    gathered = [None] * n if rank == 0 else None
    dist.gather_object(rank * 2, gathered, dst=0)
    assert rank or gathered == [2 * r for r in range(n)]


def test_groups():
    last = dist.new_group([n - 1, 0])
    assert dist.get_rank(last) == {n - 1: 0, 0: 1}.get(rank, -1)
    assert dist.get_process_group_ranks(last) == [n - 1, 0]
    x = flow.tensor([float(rank)])
    dist.all_reduce(x, group=last)
    same(x, np.float32([n - 1 if rank in (0, n - 1) else rank]))
    listed = [flow.empty(1), flow.empty(1)]
    dist.all_gather(listed, flow.tensor([float(rank)]), group=last)
    if rank in (0, n - 1):
        assert [t.item() for t in listed] == [n - 1, 0]
    alone = dist.new_group([rank])
    x = flow.tensor([3.0])
    dist.all_reduce(x, group=alone)
    same(x, np.float32([3.0]))
    dist.barrier()
    assert dist.is_initialized() and dist.is_available() and dist.get_backend() == "gloo"
    dist.init_process_group("gloo")  # connected already: nothing to do


def test_gradients():
    F = dist.functional
    w = [float(r + 1) for r in range(n)]

    def gradient(function, *shape):
        x = flow.ones(*shape).requires_grad_()
        y = function(x)
        (y * w[rank]).sum().backward()
        return y, x.grad

    y, g = gradient(F.all_reduce, 2)
    same(y, np.full(2, n, np.float32))
    same(g, np.full(2, sum(w), np.float32))
    y, g = gradient(lambda x: F.all_reduce(x, R.AVG), 2)
    same(g, np.full(2, sum(w) / n, np.float32))
    y, g = gradient(F.all_gather, 2)
    assert tuple(y.shape) == (n, 2)
    same(g, np.full(2, sum(w), np.float32))
    y, g = gradient(F.reduce_scatter, n, 2)
    same(g, np.repeat(np.float32(w), 2).reshape(n, 2))
    y, g = gradient(F.all_to_all, n, 2)
    same(g, np.repeat(np.float32(w), 2).reshape(n, 2))
    y, g = gradient(lambda x: F.broadcast(x, 1), 2)
    same(g, np.full(2, sum(w) if rank == 1 else 0, np.float32))


def test_misuse():
    collective_trace.set_mode("always")
    raises(errors.AgreementError, lambda: dist.all_reduce(flow.ones(2 + (rank == 1))), "ranks [1]: float32[3]")
    raises(errors.AgreementError, lambda: dist.all_reduce(flow.ones(7).double() if rank else flow.ones(7)), "float64")
    raises(errors.AgreementError, lambda: dist.broadcast(flow.ones(9), src=int(rank == 1)), "src=0", "src=1")
    x = flow.ones(8)
    raises(errors.AgreementError, lambda: dist.all_reduce(x) if rank else dist.barrier(), "ranks [0]: barrier()")
    raises(errors.OpValueError, lambda: dist.broadcast(x, src=n), f"rank {n}")
    raises(errors.OpValueError, lambda: dist.all_gather([flow.ones(8)], x), f"per rank of the group: {n}")
    raises(errors.OpError, lambda: dist.all_gather([flow.ones(3)] * n, x), "float32[3]")
    raises(errors.OpTypeError, lambda: dist.all_reduce(flow.arange(3), R.AVG), "int64")
    raises(errors.OpTypeError, lambda: dist.all_reduce(x, "sum"), "ReduceOp.SUM")
    raises(errors.OpTypeError, lambda: dist.all_reduce(np.ones(3)), "ndarray")
    raises(errors.OpValueError, lambda: dist.new_group([0, n]), f"[0, {n}]")
    raises(errors.OpValueError, lambda: dist.send(x, dst=rank), f"rank {rank} with itself")
    p = flow.placement.all("cpu")
    raises(errors.MixedTensorError, lambda: dist.all_reduce(x.to_global(p, flow.sbp.broadcast)), "global")
    ops = [dist.P2POp(dist.isend, x, 1)] if rank == 0 else []
    raises(errors.AgreementError, lambda: dist.batch_isend_irecv(ops), "rank 0 has 1")
    dist.barrier()


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
print(f"rank {rank} of {n} passed")
