"""Making tensors: local ones as PyTorch, global ones with the same values, each shard on its own device."""

# ruff: noqa: E501 (a snippet is one line)

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax import sbp
from tests.tensor.both import same

LOCAL = {
    "filled": "[T.zeros(2, 3), T.ones((2,)), T.zeros([2], dtype=T.int64), T.ones(2, dtype=T.bool), T.zeros(()), T.empty(2, 0)]",
    "full": "[T.full((2,), 3), T.full((2, 2), 2.5), T.full((1,), True), T.full((), 7, dtype=T.float64), T.full((2,), 1j)]",
    "arange": "[T.arange(5), T.arange(2, 7), T.arange(1, 10, 3), T.arange(5.), T.arange(0, 1, 0.25), T.arange(5, 0, -2), T.arange(0, 0.7, 0.1), T.arange(3, dtype=T.float64)]",
    "linspace": "[T.linspace(0, 1, 5), T.linspace(-3, 7, 1), T.linspace(1, 0, 4, dtype=T.float64), T.logspace(0, 2, 3), T.linspace(2, 9, 100)]",
    "linspace of integers": "[T.linspace(*ends, dtype=d) for d in (T.int64, T.int32, T.uint8) for ends in ((16.7, 1.2, 7), (0.49, 19.6, 7), (15, 1, 7), (2.5, 7, 1))] + [T.linspace(-8.4, 6.3, 7, dtype=T.int64)]",
    "logspace of integers": "[T.logspace(*ends, dtype=T.int64, base=b) for b in (2, 10, 2.5) for ends in ((1.6, 1, 3), (0, 3, 7), (2.9, 0.2, 4), (2.7, 3, 1))]",
    "eye": "[T.eye(3), T.eye(2, 4), T.eye(2, dtype=T.int64)]",
    "tensor": "[T.tensor(3), T.tensor(2.5), T.tensor(True), T.tensor([1, 2]), T.tensor([1, 2.5]), T.tensor([[True], [False]]), T.tensor([]), T.tensor([1, 2], dtype=T.float16), T.tensor(1 + 2j)]",
    "tensor of numpy": "[T.tensor(np.arange(3)), T.tensor(np.float64(2)), T.tensor(np.ones(2, 'float16')), T.from_numpy(np.arange(2.)), T.as_tensor([1, 2]), T.tensor([np.float32(1), np.float32(2)]), T.tensor(np.int32(4))]",
    "tensor of tensors": "[T.tensor([T.tensor(1.), T.tensor(2.)]), T.as_tensor(T.ones(2))]",
    "like": "x = T.ones(2, 3, dtype=T.float64); R = [T.zeros_like(x), T.ones_like(x, dtype=T.int32), T.full_like(x, 3), T.empty_like(x).shape == x.shape]",
    "new": "x = T.ones(2, dtype=T.int32); R = [x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2,), 5), x.new_tensor([1, 2]), x.new_empty(3).dtype, x.new_zeros(2, dtype=T.float32)]",
    "legacy": "[T.Tensor([1, 2]), tuple(T.Tensor(2, 3).shape), T.Tensor([1, 2]).dtype]",
    "random metadata": "[tuple(T.rand(2, 3).shape), T.randn(4).dtype, T.randint(0, 5, (3,)).dtype, T.randint(5, (2, 2)).dtype, T.randperm(5).sort()[0], T.rand(2, dtype=T.float64).dtype, T.randn_like(T.ones(3)).dtype, T.normal(0., 1., (2, 2)).dtype, T.rand(()).shape == ()]",
    "requires grad": "[T.ones(2, requires_grad=True).requires_grad, T.tensor([1.], requires_grad=True).is_leaf, T.rand(2, requires_grad=True).requires_grad]",
    "numpy back": "[T.arange(3).numpy().tolist(), np.asarray(T.ones(2)).tolist(), T.tensor([[1, 2]]).tolist(), T.tensor(2.5).item(), T.tensor(True).item(), T.tensor(3).item()]",
    "default dtype": "T.set_default_dtype(T.float64); a = [T.tensor(1.).dtype, T.ones(1).dtype, T.arange(2.).dtype]; T.set_default_dtype(T.float32); R = a + [T.get_default_dtype()]",
}  # fmt: skip


@pytest.mark.parametrize("code", LOCAL.values(), ids=LOCAL.keys())
def test_local(code):
    same(code if "R = " in code else f"R = {code}", atol=1e-7)


@pytest.mark.parametrize(
    "code",
    ["T.zeros(-1)", "T.zeros(1.5)", "T.arange(0, 5, -1)", "T.arange(0, 5, 0)", "T.tensor([[1], [1, 2]])", "T.tensor('a')", "T.from_numpy([1])", "T.ones(2, dtype=T.int64, requires_grad=True)", "T.set_default_dtype(T.int64)", "T.randint(5, 2, (2,))"],
)  # fmt: skip
def test_errors(code):
    same(f"R = {code}")


P4 = lambda: sbpjax.placement("cpu", [0, 1, 2, 3])  # noqa: E731
P22 = lambda: sbpjax.placement("cpu", [[0, 1], [2, 3]])  # noqa: E731
MAKERS = {
    "zeros": lambda **o: sbpjax.zeros(6, 5, **o),
    "full": lambda **o: sbpjax.full((6, 5), 2.5, **o),
    "arange": lambda **o: sbpjax.arange(1, 30, 2, **o),
    "linspace": lambda **o: sbpjax.linspace(0, 3, 11, **o),
    "eye": lambda **o: sbpjax.eye(6, 5, **o),
    "tensor": lambda **o: sbpjax.tensor(np.arange(30.0).reshape(6, 5), **o),
    "rand": lambda **o: sbpjax.rand(6, 5, **o),
    "randn": lambda **o: sbpjax.randn(6, 5, **o),
    "randint": lambda **o: sbpjax.randint(0, 100, (6, 5), **o),
    "randperm": lambda **o: sbpjax.randperm(13, **o),
    "normal": lambda **o: sbpjax.normal(1.0, 2.0, (6, 5), **o),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("place, layout", [(P4, "S0"), (P4, "B"), (P22, "S0,B"), (P22, "S0,S0"), (P22, "B,S0")])
def test_global_values_do_not_depend_on_the_layout(maker, place, layout):
    sbpjax.manual_seed(7)
    local = maker()
    sbpjax.manual_seed(7)
    x = maker(placement=place(), sbp=layout)
    np.testing.assert_array_equal(x.numpy(), local.numpy())
    assert x.dtype == local.dtype
    assert x.layout.codes == sbpjax.sbp.algebra.parse(layout, place().hierarchy)
    assert x._array.sharding.device_set == set(place().devices.flat)
    shard = x._array.addressable_shards[0].data.size
    assert shard <= x.numel() if layout == "B" else shard <= -(-x.numel() // 2) + 5


@pytest.mark.parametrize("name", ["zeros", "full", "arange", "eye", "tensor"])
def test_partial_sum_creation(name):
    x = MAKERS[name](placement=P4(), sbp=sbp.partial_sum)
    np.testing.assert_array_equal(x.numpy(), MAKERS[name]().numpy())
    np.testing.assert_array_equal(sum(x.local_shards().values()), MAKERS[name]().numpy())


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "randperm", "normal"])
def test_random_partial_sum_is_refused(name):
    state = sbpjax.get_rng_state().tolist()
    with pytest.raises(sbpjax.errors.SbpError, match="only broadcast or split"):
        MAKERS[name](placement=P4(), sbp=sbp.partial_sum)
    assert sbpjax.get_rng_state().tolist() == state


@pytest.mark.parametrize(
    "options",
    [{"sbp": "B"}, {"placement": "p"}, {"placement": "p", "sbp": "B", "device": "cpu"}],
    ids=["sbp", "placement", "all"],
)
def test_placement_and_sbp_come_together(options):
    options = {k: P4() if v == "p" else v for k, v in options.items()}
    with pytest.raises(TypeError, match="placement and sbp together"):
        sbpjax.ones(2, **options)


def test_placement_scope_gives_the_placement():
    with P4():
        assert sbpjax.ones(4, sbp="S0").placement == P4()
        assert sbpjax.ones(4).is_local


def test_like_follows_the_layout():
    x = sbpjax.ones(8, 4, placement=P22(), sbp="S0,B")
    assert sbpjax.zeros_like(x).layout is x.layout
    assert sbpjax.rand_like(x).layout is x.layout
    assert x.new_zeros(4, 4).sbp == x.sbp
    assert x.to_global(sbp="S1,S0").new_full((3,), 2.0).layout.codes == (-1, 0)  # a dim that is not there is not split
    assert sbpjax.ones_like(x, sbp="B,S1").layout.codes == (-1, 1)
    p = x.to_global(sbp="P,B")
    assert sbpjax.zeros_like(p).sbp == p.sbp
    assert sbpjax.randn_like(p).layout.codes == (-1, -1)
    with pytest.raises(sbpjax.errors.MixedTensorError, match="placement and sbp"):
        x.new_tensor([1.0])


def test_from_jax_round_trip():
    x = sbpjax.arange(24.0, placement=P22(), sbp="S0,B")
    again = sbpjax.from_jax(x.jax())
    assert again.layout is x.layout
    np.testing.assert_array_equal(again.numpy(), x.numpy())
    assert sbpjax.from_jax(sbpjax.ones(2).jax()).is_local


def test_devices():
    x = sbpjax.ones(2, device="cpu:1")
    assert str(x.device) == "cpu:1" and x.device == sbpjax.device("cpu", 1)
    assert (x * 2).device == x.device
    assert x.to("cpu:0").device == sbpjax.device("cpu:0")
    with pytest.raises(sbpjax.errors.PlacementError):
        sbpjax.ones(2, device="cpu:99")
    with pytest.raises(sbpjax.errors.PlacementError):
        sbpjax.device("xpu")
    with pytest.raises(RuntimeError):
        x + sbpjax.ones(2, device="cpu:2")


@pytest.mark.parametrize("value", [np.float32(2.5), np.int64(3), np.float64(1e5), np.bool_(True)])
def test_numbers_of_numpy_fill(value):
    like = sbpjax.zeros(2)
    wanted = torch.full((2,), value.item())
    found = sbpjax.full((2,), value)
    assert found.tolist() == wanted.tolist() and found.dtype.name == str(wanted.dtype).rpartition(".")[2]
    assert sbpjax.full_like(like, value).tolist() == like.new_full((2,), value).tolist() == [float(value)] * 2
    place = sbpjax.placement("cpu", [0, 1])
    assert sbpjax.full((2,), value, placement=place, sbp=sbpjax.sbp.split(0)).tolist() == wanted.tolist()
