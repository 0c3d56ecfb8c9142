"""Generators: seeds, states, and streams that do not depend on the layout."""

import jax
import numpy as np
import pytest
import torch

import sbpjax
from sbpjax._core.tensor.creation import generator as generator_module


def test_seed_repeats_the_stream():
    sbpjax.manual_seed(3)
    first = [sbpjax.rand(4).tolist(), sbpjax.randn(2).tolist(), sbpjax.randperm(5).tolist()]
    sbpjax.manual_seed(3)
    assert [sbpjax.rand(4).tolist(), sbpjax.randn(2).tolist(), sbpjax.randperm(5).tolist()] == first
    assert sbpjax.rand(4).tolist() != first[0]


def test_state_and_fork():
    sbpjax.manual_seed(5)
    sbpjax.rand(3)
    state = sbpjax.get_rng_state()
    a = sbpjax.rand(3).tolist()
    sbpjax.set_rng_state(state)
    assert sbpjax.rand(3).tolist() == a
    sbpjax.set_rng_state(state)
    with sbpjax.fork_rng():
        sbpjax.rand(100)
    assert sbpjax.rand(3).tolist() == a
    with pytest.raises(TypeError):
        sbpjax.set_rng_state(sbpjax.ones(3))


def test_own_generator_leaves_the_default_alone():
    g = sbpjax.Generator().manual_seed(1)
    sbpjax.manual_seed(9)
    a = sbpjax.rand(3).tolist()
    sbpjax.manual_seed(9)
    b = sbpjax.rand(3, generator=g).tolist()
    assert sbpjax.rand(3).tolist() == a != b
    assert g.initial_seed() == 1
    with pytest.raises(TypeError, match="Generator"):
        sbpjax.rand(3, generator=5)


FILLS = {
    "uniform_": (lambda x: x.uniform_(-1, 3), 1.0, 16 / 12),
    "normal_": (lambda x: x.normal_(2.0, 3.0), 2.0, 9.0),
    "exponential_": (lambda x: x.exponential_(2.0), 0.5, 0.25),
    "bernoulli_": (lambda x: x.bernoulli_(0.3), 0.3, 0.21),
    "random_": (lambda x: x.random_(0, 11), 5.0, 10.0),
    "geometric_": (lambda x: x.geometric_(0.3), 1 / 0.3, 0.7 / 0.09),
    "log_normal_": (lambda x: x.log_normal_(0.0, 0.25), np.exp(1 / 32), np.exp(1 / 16) * np.expm1(1 / 16)),
}


@pytest.mark.parametrize("fill, mean, variance", FILLS.values(), ids=FILLS.keys())
@pytest.mark.parametrize("layout", [None, "S0", "B", "P"])
def test_in_place_draws(fill, mean, variance, layout):
    options = {} if layout is None else {"placement": sbpjax.placement("cpu", range(4)), "sbp": layout}
    sbpjax.manual_seed(0)
    x = sbpjax.zeros(100, 81, **options)
    version = x._version
    before = x.sbp if layout else None
    assert fill(x) is x and x._version > version
    assert layout is None or x.sbp == before
    values = x.numpy()
    assert abs(values.mean() - mean) < 5 * np.sqrt(variance / values.size)
    assert abs(values.var() - variance) < 0.1 * variance
    sbpjax.manual_seed(0)
    np.testing.assert_array_equal(fill(sbpjax.zeros(100, 81)).numpy(), values)


@pytest.mark.parametrize("sbp", ["P,S0", "S1,P", "P,P"])
@pytest.mark.parametrize("mean", [0.0, 0.5])
def test_truncated_normal_numbers_fill_a_partial_sum(sbp, mean):
    x, local = sbpjax.zeros(4, 6, placement=sbpjax.placement("cpu", [[0, 1], [2, 3]]), sbp=sbp), sbpjax.zeros(4, 6)
    before = x.sbp
    for tensor in (x, local):
        sbpjax.manual_seed(0)
        sbpjax.nn.init.trunc_normal_(tensor, mean=mean)
    assert x.sbp == before
    np.testing.assert_array_equal(x.numpy(), local.numpy())


def test_in_place_draw_on_leaf_is_refused():
    x = sbpjax.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.normal_()
    with sbpjax.no_grad():
        x.normal_()
    assert x.is_leaf and x.requires_grad and x.abs().sum() > 0


def test_dropout_and_bernoulli_gradients():
    sbpjax.manual_seed(0)
    x = sbpjax.ones(1000, requires_grad=True)
    y = sbpjax.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())
    assert set(np.unique(y.detach().numpy()).round(4)) == {0.0, np.float32(1.3333).round(4)}


def test_multinomial():
    sbpjax.manual_seed(0)
    drawn = sbpjax.multinomial(sbpjax.tensor([0.0, 1.0, 3.0]), 4000, replacement=True).numpy()
    counts = np.bincount(drawn, minlength=3) / 4000
    np.testing.assert_allclose(counts, [0, 0.25, 0.75], atol=0.03)
    assert sorted(sbpjax.multinomial(sbpjax.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", [None, "a", [1], 2**64, -(2**63) - 1], ids=repr)
def test_a_seed_that_is_none_is_refused_and_the_stream_goes_on(seed):
    sbpjax.manual_seed(3)
    before = sbpjax.get_rng_state().tolist()
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        torch.manual_seed(seed)
    with pytest.raises((TypeError, ValueError), match="fix:  manual_seed"):
        sbpjax.manual_seed(seed)
    assert sbpjax.get_rng_state().tolist() == before


@pytest.mark.parametrize("seed", [-1, -(2**63), 2**64 - 1, 1.5, np.int64(7), True], ids=repr)
def test_every_seed_that_torch_takes_is_taken(seed):
    torch.manual_seed(seed)
    sbpjax.manual_seed(seed)
    first = sbpjax.rand(3).tolist()
    sbpjax.manual_seed(seed)
    assert sbpjax.rand(3).tolist() == first


@pytest.mark.parametrize("arguments", [(5,), (0, None)], ids=repr)
def test_randint_says_what_is_missing(arguments):
    for package in (torch, sbpjax):
        with pytest.raises(TypeError) as caught:
            package.randint(*arguments)
    assert "fix:  sbpjax.randint" in str(caught.value)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, 2**32, 67280421310721, 2**63 - 1])
def test_keys_folded_on_the_host_are_those_of_the_program(seed):
    program = jax.jit(lambda s, c: jax.random.key_data(jax.random.fold_in(jax.random.key(s), c)))
    for counter in (0, 1, 77, 2**31, 2**32 - 1):
        np.testing.assert_array_equal(generator_module._fold_counter(seed, counter), program(seed, counter))


def test_a_stream_goes_on_alike_when_a_program_takes_over(monkeypatch):
    def draws(by_hand):
        monkeypatch.setattr(generator_module, "_by_hand", by_hand)
        generator = sbpjax.Generator()
        generator.manual_seed(3)
        return [sbpjax.rand(3, generator=generator).numpy() for _ in range(4)]

    np.testing.assert_array_equal(draws(2), draws(0))


@pytest.mark.parametrize("placement", [None, [0, 1]])
def test_randint_has_one_program_for_all_bounds(placement):
    where = {}
    if placement is not None:
        where = {"placement": sbpjax.placement("cpu", placement), "sbp": sbpjax.sbp.split(0)}

    def draw(low, high):
        sbpjax.randint(low, high, (4, 7), **where)
        sbpjax.empty(4, 7, **where).random_(low, high)

    for _ in range(20):
        draw(0, 10)
    compiled = []
    listen = lambda event, *_, **__: compiled.append(event) if event.endswith("backend_compile_duration") else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for high in range(11, 30):
            draw(high - 10, high * 10**9)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compiled
