"""Random numbers in place are drawn by the first read: the same numbers, and none that nobody reads."""

import copy
import pickle
import threading

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.creation import host_constants
from sbpjax._core.tensor.storage.lazy_random import is_undrawn
from sbpjax._core.tensor.storage.payload import payload


@pytest.fixture
def draws(monkeypatch):
    """The sizes of what was drawn so far."""
    sizes = []
    original = host_constants._draw_numbers

    def joined(fn, options, inputs, size, *rest):
        sizes.append(size)
        return original(fn, options, inputs, size, *rest)

    monkeypatch.setattr(host_constants, "_draw_numbers", joined)
    monkeypatch.setattr(host_constants, "_made", host_constants.LRUCache(64))
    return sizes


def places() -> list[dict]:
    return [{}, {"device": "cpu:1"}, {"placement": flow.placement("cpu", range(4)), "sbp": flow.sbp.split(0)}]


def filled(options=None, seed=3):
    flow.manual_seed(seed)
    return flow.empty(8, 5, **(options or {})).normal_()


def numbers(seed=3) -> list:
    flow.manual_seed(seed)
    return flow.empty(8, 5).normal_().tolist()


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
def test_only_the_last_fill_before_a_read_is_drawn(draws, options):
    flow.manual_seed(0)
    x = flow.empty(8, 5, **options)
    before = payload(x)
    x.uniform_(-1, 1)
    x.normal_(0, 0.02)
    y = flow.empty(8, 5, **options).uniform_()
    assert draws == [] and is_undrawn(x)
    assert x.shape == (8, 5) and x.dtype is flow.float32 and not x.is_meta and x.numel() == 40 and x.is_leaf
    assert x._version == 2 and draws == [] and str(x.device) == str(flow.zeros(1, **options).device)
    found = x.numpy(), y.numpy()
    assert draws == [40, 40] and not is_undrawn(x) and x._version == 2
    assert payload(x).sharding == before.sharding and payload(x).committed == before.committed

    flow.manual_seed(0)
    at_once = flow.empty(8, 5, **options)
    seen = at_once.detach()  # who shares its storage sees each write
    at_once.uniform_(-1, 1)
    at_once.normal_(0, 0.02)
    assert not is_undrawn(at_once)
    np.testing.assert_array_equal(found[0], at_once.numpy())
    np.testing.assert_array_equal(found[0], seen.numpy())
    np.testing.assert_array_equal(found[1], flow.empty(8, 5, **options).uniform_().numpy())


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
@pytest.mark.parametrize("write", ["copy", "fill", "zero", "data"])
def test_numbers_that_are_written_over_are_not_drawn(draws, options, write):
    x = filled(options)
    if write == "copy":
        x.copy_(flow.full((8, 5), 2.0, **options))
    elif write == "fill":
        x.fill_(2.0)
    elif write == "zero":
        x.zero_()
    else:
        x.data = flow.full((8, 5), 2.0, **options)
    assert (x.numpy() == (0 if write == "zero" else 2)).all()
    assert draws == [] and x._version == (0 if write == "data" else 2)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copy_(flow.ones(3)),
        lambda x: x.copy_(flow.ones(8, 5, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)),
        lambda x: x.fill_(flow.ones(2)),
        lambda x: x.requires_grad_().zero_(),
    ],
    ids=["shape", "placement", "value", "leaf"],
)
def test_a_write_that_is_refused_leaves_the_numbers(write):
    wanted = numbers()
    x = filled()
    with pytest.raises((RuntimeError, ValueError)):
        write(x)
    assert x.tolist() == wanted


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
@pytest.mark.parametrize("through", ["data", "detach", "itself"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_fill_through_an_alias_is_one_draw(draws, options, through, kept):
    x = filled(options)
    alias = {"data": lambda: x.data, "detach": x.detach, "itself": lambda: x}[through]()
    others = [x.data, x.detach()] if kept else []
    assert alias.shape == x.shape and alias.dtype is x.dtype and str(alias.device) == str(x.device)
    assert alias.sbp == x.sbp if options.get("sbp") else alias.is_local
    flow.manual_seed(9)
    alias.normal_(0.5, 2)
    assert draws == [] and x._version == (1 if through == "data" else 2)
    found = x.numpy()
    assert draws == [40]
    flow.manual_seed(9)
    wanted = flow.zeros(8, 5).normal_(0.5, 2).numpy()
    np.testing.assert_array_equal(found, wanted)
    for tensor in (alias, *others):
        np.testing.assert_array_equal(tensor.numpy(), wanted)
    alias[0] = 7.0
    for tensor in (x, alias, *others):  # they share what was drawn
        assert (tensor.numpy()[0] == 7).all() and (tensor.numpy()[1:] == wanted[1:]).all()
    x.mul_(2)
    assert all((tensor.numpy()[0] == 14).all() for tensor in (x, alias, *others))


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
def test_writes_through_an_alias_are_seen(draws, options):
    for write in (
        lambda t: t.zero_(),
        lambda t: t.fill_(2.0),
        lambda t: t.copy_(flow.full((8, 5), 2.0, **options)),
        lambda t: t.mul_(0).add_(2),
        lambda t: t.random_(2, 3),
    ):
        x = filled(options)
        kept, alias = x.detach(), x.data
        write(alias)
        assert x._version == 1 and len(set(x.numpy().ravel())) == 1
        np.testing.assert_array_equal(x.numpy(), alias.numpy())
        np.testing.assert_array_equal(x.numpy(), kept.numpy())
    x = filled(options)
    alias = x.data
    x.data = flow.zeros(8, 5, **options)  # shows another storage from now on
    assert (x.numpy() == 0).all() and alias.numpy().any()
    x, other = filled(options), filled(options)
    alias = other.data
    del other
    alias.zero_()
    assert (alias.numpy() == 0).all()


def test_its_grad_is_its_own():
    w = nn.Parameter(flow.empty(8, 5))
    with flow.no_grad():
        w.normal_()
    alias = w.data
    assert not alias.requires_grad and w.requires_grad and alias.is_leaf
    (w * 2).sum().backward()
    assert (w.grad.numpy() == 2).all() and alias.grad is None
    np.testing.assert_array_equal(alias.numpy(), w.detach().numpy())


@pytest.mark.parametrize("options", places(), ids=["local", "device", "split"])
def test_its_shape_changes_in_place(options):
    x = filled(options)
    wanted = filled(options).numpy()
    np.testing.assert_array_equal(x.t_().numpy(), wanted.T)
    y = flow.empty(1, 5, **(options if "sbp" not in options else options | {"sbp": flow.sbp.broadcast})).normal_()
    assert y.squeeze_(0).shape == (5,)


def test_a_reader_without_64_bits_changes_no_draw():
    flow.manual_seed(3)
    wanted = flow.randn(3, dtype=flow.float64).tolist()
    flow.manual_seed(3)
    x = flow.empty(3, dtype=flow.float64).normal_()
    with jax.enable_x64(False):
        x.numpy()
    y = flow.empty(3, dtype=flow.float64).normal_()
    assert x.tolist() == wanted and x.numpy().dtype == y.numpy().dtype == np.float64


def test_a_fill_that_cannot_be_is_refused_where_it_is_asked_for():
    for code in (lambda x: x.uniform_(2, 1), lambda x: x.uniform_(0, float("inf")), lambda x: x.normal_(0, -1)):
        with pytest.raises(RuntimeError, match=r"^x\.(uniform|normal)_"):
            code(flow.empty(3))
    with pytest.raises(RuntimeError, match=r"trunc_normal_\(a=2, b=1\)"):
        nn.init.trunc_normal_(flow.empty(3), a=2, b=1)


def test_a_parts_write_and_views_see_the_numbers():
    wanted = numbers()
    x = filled()
    x[0] = 7.0
    assert x[1:].tolist() == wanted[1:] and (x[0].numpy() == 7).all()
    y = filled()
    row = y[2]
    y.mul_(2)
    np.testing.assert_array_equal(row.numpy(), 2 * np.float32(wanted[2]))
    z = filled()
    z.copy_(z)
    assert z.tolist() == wanted
    filled().fill_(filled()[0, 0])


def test_a_read_in_a_trace_draws_outside_it():
    wanted = numbers()
    x = filled()
    assert jax.jit(lambda: payload(x) + 0)().tolist() == wanted
    assert x.tolist() == wanted
    y = filled()
    assert jax.vmap(lambda i: payload(y)[i])(np.arange(8)).tolist() == wanted
    assert y.tolist() == wanted
    z = filled()

    @flow.compile
    def double():
        return z * 2

    np.testing.assert_array_equal(double().numpy(), 2 * np.float32(wanted))
    assert z.tolist() == wanted


def test_a_graph_writes_a_tensor_that_is_not_drawn():
    wanted = np.float32(numbers())

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("x", filled())
            self.register_buffer("y", filled())

        def forward(self):
            self.x.add_(1)
            self.y.copy_(self.x)
            return self.x.sum()

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.counts = Counts()

        def build(self):
            return self.counts()

    graph = Step()
    graph(), graph()
    np.testing.assert_array_equal(graph.counts.x.numpy(), wanted + 1 + 1)
    np.testing.assert_array_equal(graph.counts.y.numpy(), graph.counts.x.numpy())
    loose = filled()

    @flow.compile
    def write():
        loose.uniform_()

    with pytest.raises(RuntimeError, match="state="):
        write()
    assert loose.tolist() == wanted.tolist()  # nothing of the trace is left in it


def test_another_default_device_of_the_reader_is_not_where_the_numbers_lie():
    x, wanted = filled(), numbers()
    with jax.default_device(jax.devices()[2]):
        assert x.tolist() == wanted
    assert payload(x).devices() == {jax.devices()[0]}


def test_threads_that_read_a_tensor_get_one_array(draws):
    for _ in range(10):
        x, found = filled(), []
        barrier = threading.Barrier(4)

        def read(x=x, found=found, barrier=barrier):
            barrier.wait()
            found.append(payload(x))

        threads = [threading.Thread(target=read) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert len({id(a) for a in found}) == 1
    assert draws == [40] * 10


def test_what_fails_while_it_is_drawn_is_drawn_by_the_next_read(monkeypatch):
    wanted, x = numbers(), filled()
    original = host_constants._draw_numbers

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(host_constants, "_draw_numbers", full)
    with pytest.raises(MemoryError):
        x.sum()
    monkeypatch.setattr(host_constants, "_draw_numbers", original)
    assert x.tolist() == wanted


def test_the_state_of_a_generator_is_as_if_all_were_drawn():
    generator = flow.Generator().manual_seed(5)
    x = flow.empty(3).normal_(generator=generator)
    state = generator.get_state().tolist()
    after = flow.rand(2, generator=generator).tolist()
    assert state == [5, 1]
    generator.manual_seed(9)  # a key that was taken stays taken
    again = flow.Generator().manual_seed(5)
    assert x.tolist() == flow.empty(3).normal_(generator=again).tolist()
    assert flow.rand(2, generator=again).tolist() == after


def test_a_model_is_built_and_loaded_without_a_draw(draws):
    flow.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 4))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=0.02)
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
    assert draws == []
    frozen = copy.deepcopy(model).state_dict()
    drawn = len(draws)
    model.load_state_dict(frozen)
    model.train().requires_grad_(True)
    assert len(draws) == drawn
    # deepcopy drew the originals; a model that nobody copied is loaded without
    other = nn.Linear(8, 4)
    other.load_state_dict({"weight": flow.ones(4, 8), "bias": flow.zeros(4)})
    assert len(draws) == drawn and (other.weight.numpy() == 1).all()
    model(flow.ones(2, 3, 3, 3)).sum().backward()
    optimizer.step()
    assert np.isfinite(model[0].weight.numpy()).all()


def test_copies_and_files_have_the_numbers(tmp_path):
    wanted = numbers()
    assert copy.deepcopy(filled()).tolist() == wanted
    assert pickle.loads(pickle.dumps(filled())).tolist() == wanted
    flow.save({"x": filled()}, tmp_path / "x")
    assert flow.load(tmp_path / "x")["x"].tolist() == wanted
    assert filled().to(flow.float64).tolist() == wanted
    assert filled().data.tolist() == filled().clone().tolist() == wanted
    assert nn.Parameter(filled()).tolist() == wanted
    assert filled().to_global(**places()[2]).tolist() == wanted
    x = flow.empty(8, 5)
    x.data = filled()
    assert x.tolist() == wanted
