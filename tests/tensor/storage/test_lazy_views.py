"""Views without payload (`_core.tensor.storage.lazy_views`): what they save, and that nobody can tell."""

import copy
import pickle
import random

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.tensor.dispatch import op
from sbpjax._core.tensor.storage import lazy_views, splitting, views
from sbpjax._core.tensor.storage.payload import payload
from tests.support import graphs


def is_lazy(x) -> bool:
    return isinstance(x._array, lazy_views.LazyView)


def leaf(*shape):
    return flow.tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)).requires_grad_()


@pytest.fixture
def programs(monkeypatch):
    """The names of ops that run, in order, of all that are looked up by function."""
    ran = []
    whole = op.Op.__getattr__
    monkeypatch.setattr(op, "_OPS", LRUCache(1000))
    monkeypatch.setattr(lazy_views, "_CHAINS", LRUCache(1000))
    monkeypatch.setattr(views, "_known", {})
    splitting._cut.cache_clear()

    def counted(self, name):
        call = whole(self, name)

        def run(*arrays):
            ran.append(self.name)
            return call(*arrays)

        self.call = run
        return run

    monkeypatch.setattr(op.Op, "__getattr__", counted)
    return ran


def heads(x):
    return x.reshape(2, 3, 2, 6).transpose(1, 2).chunk(3, dim=-1)


def test_facts_need_no_payload():
    a, b, _ = heads(leaf(6, 12))
    assert is_lazy(a)
    assert a.shape == (2, 2, 3, 2)
    assert (a.dtype, a.ndim, a.device.type, a.requires_grad) == (flow.float32, 4, "cpu", True)
    assert a.stride() == (36, 6, 12, 1)
    assert is_lazy(a)
    assert a.sum().item() == torch.arange(72.0).reshape(2, 3, 2, 6)[..., :2].sum()
    assert not is_lazy(a)
    assert b[0, 0, 0].tolist() == [2.0, 3.0]


def test_a_chain_is_one_program_each_way(programs):
    x = leaf(6, 14)
    parts = x.reshape(2, 3, 2, 7).transpose(1, 2).split([3, 4], dim=-1)
    assert programs == []
    loss = parts[0].sum() + parts[1].sum()
    assert [name for name in programs if name not in ("sum", "add")] == ["split"]
    del programs[:]
    loss.backward()
    assert [name for name in programs if name != "sum_backward"] == ["split_backward"]
    assert x.grad.numpy().tolist() == np.ones((6, 14)).tolist()


def test_a_copy_of_an_unread_view_is_one_program(programs):
    x = leaf(3, 5)
    y, z = x.t().contiguous(), x.t().reshape(-1)
    assert programs == ["identity", "reshape"]
    assert z.tolist() == y.view(-1).tolist() == x.detach().numpy().T.reshape(-1).tolist()
    assert not y._is_view() and not z._is_view()


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_on_a_view_that_a_node_passes(when):
    x, seen = leaf(3, 4), []
    t = x.t()
    u = t.unsqueeze(0)
    if when == "before":
        t.register_hook(lambda g: seen.append(tuple(g.shape)))
        t.retain_grad()
    flat, wide = t.reshape(-1), u * 2  # both pass t by
    if when == "after":
        t.register_hook(lambda g: seen.append(tuple(g.shape)))
        t.retain_grad()
    (flat.sum() + wide.sum()).backward()
    assert seen == [(4, 3)]
    assert t.grad.numpy().tolist() == np.full((4, 3), 3.0).tolist()
    assert x.grad.numpy().tolist() == np.full((3, 4), 3.0).tolist()


def test_the_node_of_a_view_read_late_is_on_the_way():
    x = leaf(3, 4)
    t = x.t()
    u = t.unsqueeze(0)
    copies = u.reshape(-1)
    assert copies.grad_fn.next_functions[0][0] is x.expand_as(x).grad_fn.next_functions[0][0]  # x's own
    assert copies.grad_fn.next_functions[0][0] is not t.grad_fn
    assert copies.grad_fn.next_functions[0][0] is t.grad_fn  # asked for, it is there
    assert copies.grad_fn.next_functions[0][0] is not u.grad_fn
    assert copies.grad_fn.next_functions[0][0] is u.grad_fn
    assert u.grad_fn.next_functions[0][0] is t.grad_fn
    (grad,) = flow.autograd.grad(copies.sum(), [u])
    assert grad.shape == (1, 4, 3)


def test_a_hook_that_reads_during_a_walk():
    x, seen = leaf(3, 4), []
    t = x.t()
    flat = t.reshape(-1)
    flat.register_hook(lambda g: seen.append(t.sum().item()))
    flat.sum().backward()
    assert seen == [66.0]
    assert x.grad.numpy().tolist() == np.ones((3, 4)).tolist()


def test_writes_show_in_views_not_in_copies():
    x = flow.zeros(2, 3)
    view, part = x.t(), x.t()[1:]
    copied = x.t().reshape(-1)
    x[0, 1] = 5.0
    assert view.tolist() == [[0, 0], [5, 0], [0, 0]]
    assert part.tolist() == [[5, 0], [0, 0]]
    assert copied.tolist() == [0] * 6
    view = x.t()
    view.zero_()  # written without having been read
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    view = x.t()
    view.copy_(flow.ones(3, 2))
    assert view.tolist() == [[1, 1]] * 3 and not view.requires_grad
    with pytest.raises(RuntimeError):
        leaf(2, 3).t().zero_()


def test_a_view_that_is_passed_often_remembers_few():
    t = leaf(2, 3).t()
    for _ in range(300):
        t.reshape(-1)
    assert is_lazy(t) and len(t._array.outputs.passed) <= 64


def test_parameters_of_views():
    x = flow.arange(6.0).reshape(2, 3)
    p = flow.nn.Parameter(x.t())
    (p * 2.0).sum().backward()
    assert p.shape == (3, 2) and p.grad.tolist() == [[2, 2]] * 3 and p.is_leaf
    p.data = x.view(3, 2)
    assert p.tolist() == [[0, 1], [2, 3], [4, 5]]
    y = x.t().requires_grad_()
    (y * y).sum().backward()
    assert y.is_leaf and y.grad.tolist() == [[0, 6], [2, 8], [4, 10]]


def test_an_update_reaches_a_view_that_was_not_read():
    w = flow.nn.Parameter(flow.ones(2, 3))
    t = w.t()
    w.grad = flow.ones(2, 3)
    flow.optim.SGD([w], lr=0.5).step()
    assert payload(t).tolist() == [[0.5, 0.5]] * 3 and t.tolist() == [[0.5, 0.5]] * 3


def test_recording_is_decided_when_the_view_is_made():
    x = leaf(2, 3)
    with flow.no_grad():
        silent = x.t()
    loud = x.t()
    with flow.no_grad():
        assert loud.unsqueeze(0).grad_fn is None
        assert loud.grad_fn is not None
    assert silent.grad_fn is None and not silent.requires_grad
    y = flow.ones(2, 3)
    early = y.t()
    y.requires_grad_()
    assert not early.requires_grad and early.grad_fn is None


def test_detach_and_data():
    x = leaf(2, 3)
    t = x.t()
    assert t.detach().grad_fn is None and t.grad_fn is not None
    held = flow.zeros(2, 3)
    view = held.t()
    held.data = flow.ones(4)
    assert view.tolist() == [[0, 0]] * 3
    view.data = flow.ones(5)
    assert view.shape == (5,)


def test_a_long_chain_is_read_on_the_way():
    x = y = leaf(2, 3)
    for _ in range(20):
        y = y.t()
    assert y._array.outputs.depth <= 6
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 1]] * 2


def test_read_within_a_trace():
    x = flow.ones(2, 3)
    t = x.t()
    whole = flow.func.vmap(lambda row: (t + row).sum())(flow.ones(4, 2))
    assert whole.tolist() == [12.0] * 4
    assert t.tolist() == [[1, 1]] * 3
    u = x.t()
    assert graphs.graph_of(lambda y: y * u)(flow.ones(3, 2)).tolist() == [[1, 1]] * 3
    assert u.tolist() == [[1, 1]] * 3


def test_copied_and_pickled():
    t = flow.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert copy.deepcopy(t).tolist() == [[1, 3], [2, 4]]
    t = flow.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert pickle.loads(pickle.dumps(t)).tolist() == [[1, 3], [2, 4]]
    assert copy.copy(flow.tensor([[1.0, 2.0]]).t()).tolist() == [[1], [2]]


def test_what_is_missing_is_missing():
    t = flow.ones(2, 3).t()
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        t.nothing  # noqa: B018
    assert not hasattr(t, "nothing") and is_lazy(t) and isinstance(t, flow.Tensor)
    assert t.__class__ is flow.Tensor and type(t.tanh() if t.sum() else t) is type(t) is flow.Tensor


MOVES = "t reshape split unsqueeze copy contiguous write hook retain detach mul narrow flat drop".split()


def program(lib, draw):
    """Run a random program of views, copies, writes and hooks; return what it computed and what its hooks saw."""
    seen, results = [], []
    x = lib.arange(24, dtype=lib.float32).reshape(4, 6).clone().requires_grad_()
    pool = [x * 1.0]  # one storage that may be written
    may_write = True
    if draw.random() < 0.5:
        pool.append(x)
    for turn in range(draw.randrange(4, 14)):
        y = draw.choice(pool)
        what = draw.choice(
            "t reshape split unsqueeze copy contiguous write hook retain detach mul narrow flat drop".split()
        )
        if what == "t" and y.ndim > 1:
            pool.append(y.transpose(0, -1))
        elif what == "reshape":
            pool.append(y.reshape(2, -1))
        elif what == "split":
            pool.extend(y.chunk(2, dim=draw.randrange(y.ndim)))
            may_write = False  # PyTorch refuses even to look at one of several whose base was written
        elif what == "unsqueeze" and y.ndim < 4:
            pool.append(y.unsqueeze(0))
        elif what == "copy":
            pool.append(y.clone())
        elif what == "contiguous":
            pool.append(y.contiguous())
        elif what == "write" and may_write and not y.is_leaf and y._base is not x:
            try:
                y.mul_(2.0)
            except RuntimeError:
                results.append(("refused", turn))
        elif what in ("hook", "retain") and not y.is_leaf and y.requires_grad:
            y.register_hook(lambda g, turn=turn: g is None or seen.append((turn, g.sum().item())))
            may_write = False  # PyTorch's writes to a view go past its old hooks
        elif what == "detach":
            results.append(y.detach().sum().item())
        elif what == "mul":
            pool.append(y * 3.0)
        elif what == "narrow" and y.shape[0] > 1:
            pool.append(y[1:])
        elif what == "flat":
            pool.append(y.reshape(-1))
        elif what == "drop" and len(pool) > 2:
            pool = [pool[0], *[p for p in pool[1:] if p is not y or p is x]]
    try:
        total = sum((p * (i + 1)).sum() for i, p in enumerate(pool) if p.requires_grad)
        total.backward()
        results.append(total.item())
    except RuntimeError:
        results.append("refused")
    results += [p.detach().tolist() for p in pool]
    return results, sorted(seen), None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("block", range(8))
def test_random_programs_are_pytorchs(block):
    for number in range(12):
        ours, peer = (program(lib, random.Random(100 * block + number)) for lib in (flow, torch))
        assert ours == peer, f"program {100 * block + number}"
