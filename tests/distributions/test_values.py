"""Densities, moments, entropies, divergences and shapes equal PyTorch's; draws have the moments they should."""

import functools

import numpy as np
import pytest
import torch
import torch.distributions as theirs

import sbpjax as flow
from sbpjax import distributions as ours
from tests.support import compare

RTOL, ATOL = 2e-5, 2e-5  # float32 special functions, of which two libraries' differ by some units in the last place
close = functools.partial(compare.close, rtol=RTOL, atol=ATOL)
rng = np.random.default_rng(0)


def positive(*shape):
    return np.asarray(rng.random(shape) * 2 + 0.3, np.float32)


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def unit(*shape):
    return (rng.random(shape) * 0.8 + 0.1).astype(np.float32)


def simplex(*shape):
    x = positive(*shape)
    return x / x.sum(-1, keepdims=True)


def cholesky(n, *batch):
    lower = np.tril(real(*batch, n, n) * 0.3)
    lower[..., np.arange(n), np.arange(n)] = positive(*batch, n)
    return lower


def spread(*shape):
    lower = cholesky(shape[-1], *shape[:-2])
    return (lower @ np.swapaxes(lower, -1, -2)).astype(np.float32)


# name, parameters, value
CASES = [
    ("Normal", {"loc": real(3, 1), "scale": positive(4)}, real(2, 3, 4)),
    ("Uniform", {"low": -positive(3), "high": positive(3)}, np.zeros(3, np.float32)),
    ("Exponential", {"rate": positive(3)}, positive(2, 3)),
    ("Laplace", {"loc": real(3), "scale": positive(3)}, real(2, 3)),
    ("Gumbel", {"loc": real(3), "scale": positive(3)}, real(2, 3)),
    ("LogNormal", {"loc": real(3), "scale": positive(3)}, positive(2, 3)),
    ("Gamma", {"concentration": positive(3), "rate": positive(3)}, positive(2, 3)),
    ("Chi2", {"df": positive(3)}, positive(2, 3)),
    ("Beta", {"concentration1": positive(3), "concentration0": positive(3)}, unit(2, 3)),
    ("StudentT", {"df": positive(3) + 2, "loc": real(3), "scale": positive(3)}, real(2, 3)),
    ("Dirichlet", {"concentration": positive(2, 4)}, simplex(2, 4)),
    ("Bernoulli", {"probs": unit(3)}, np.array([0, 1, 1], np.float32)),
    ("Bernoulli", {"logits": real(3)}, np.array([0, 1, 1], np.float32)),
    ("Geometric", {"probs": unit(3)}, np.array([0, 2, 5], np.float32)),
    ("Binomial", {"total_count": 5, "probs": unit(3)}, np.array([0, 2, 5], np.float32)),
    ("Binomial", {"total_count": 4, "logits": real(3)}, np.array([0, 2, 4], np.float32)),
    ("Poisson", {"rate": positive(3)}, np.array([0, 2, 5], np.float32)),
    ("Categorical", {"probs": positive(2, 4)}, np.array([[0, 1], [3, 2]])),
    ("Categorical", {"logits": real(4)}, np.array([0, 3])),
    ("OneHotCategorical", {"logits": real(2, 3)}, np.eye(3, dtype=np.float32)[[0, 2]]),
    ("Multinomial", {"total_count": 4, "probs": positive(2, 3)}, np.array([[1, 3, 0], [2, 1, 1]], np.float32)),
    ("Multinomial", {"total_count": 3, "logits": real(3)}, np.array([0, 1, 2], np.float32)),
    ("MultivariateNormal", {"loc": real(2, 3), "scale_tril": cholesky(3)}, real(2, 3)),
    ("MultivariateNormal", {"loc": real(3), "covariance_matrix": spread(2, 3, 3)}, real(2, 3)),
    ("MultivariateNormal", {"loc": real(3), "precision_matrix": spread(3, 3)}, real(3)),
    ("NegativeBinomial", {"total_count": positive(3) + 1, "probs": unit(3)}, np.array([0, 2, 5], np.float32)),
    ("NegativeBinomial", {"total_count": 3, "logits": real(3)}, np.array([0, 2, 5], np.float32)),
]
HEAVY = {"StudentT", "LogNormal"}  # tails
IDS = [f"{name}-{'-'.join(parameters)}" for name, parameters, _ in CASES]


def made(package, tensor, name, parameters):
    arrays = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in parameters.items()}
    return getattr(package, name)(**arrays)


def both(name, parameters):
    return made(ours, flow.tensor, name, parameters), made(theirs, torch.tensor, name, parameters)


@pytest.mark.parametrize(("name", "parameters", "value"), CASES, ids=IDS)
def test_values_equal_torchs(name, parameters, value):
    mine, other = both(name, parameters)
    assert mine.batch_shape == tuple(other.batch_shape) and mine.event_shape == tuple(other.event_shape)
    close(mine.log_prob(flow.tensor(value)), other.log_prob(torch.tensor(value)))
    for what in ("mean", "variance", "stddev", "mode"):
        try:
            expected = getattr(other, what)
        except NotImplementedError:
            continue
        close(getattr(mine, what), expected)
    for what in ("entropy", "perplexity"):
        try:
            expected = getattr(other, what)()
        except NotImplementedError:
            continue
        close(getattr(mine, what)(), expected)
    for what in ("cdf", "icdf"):
        argument = value if what == "cdf" else unit(*value.shape)
        try:
            expected = getattr(other, what)(torch.tensor(argument))
        except NotImplementedError:
            continue
        close(getattr(mine, what)(flow.tensor(argument)), expected)
    for expand in (True, False) if other.has_enumerate_support else ():
        close(mine.enumerate_support(expand).float(), other.enumerate_support(expand).float())
    batch = (2, *other.batch_shape)
    assert mine.expand(batch).batch_shape == batch
    close(mine.expand(batch).log_prob(flow.tensor(value)), other.expand(batch).log_prob(torch.tensor(value)))
    assert mine.has_rsample == other.has_rsample and repr(mine).startswith(f"{name}(")


PACKAGES = ((ours, flow.tensor), (theirs, torch.tensor))


def test_derived_distributions_equal_torchs():
    x = real(5, 3)
    for make in (
        lambda p, t: p.Independent(p.Normal(t(real_a), t(scale_a)), 1),
        lambda p, t: p.TransformedDistribution(
            p.Normal(t(real_a), t(scale_a)), [p.TanhTransform(), p.AffineTransform(0.5, 3.0)]
        ),
        lambda p, t: p.TransformedDistribution(p.Normal(t(real_a), t(scale_a)), p.SigmoidTransform().inv.inv),
        lambda p, t: p.MixtureSameFamily(p.Categorical(t(scale_a)), p.Normal(t(real_a), t(scale_a))),
    ):
        mine, other = (make(p, t) for p, t in PACKAGES)
        value = np.clip(np.abs(x), 0.05, 0.9)
        value = value[:, 0] if not mine.batch_shape and not mine.event_shape else value
        close(mine.log_prob(flow.tensor(value)), other.log_prob(torch.tensor(value)))
        assert mine.batch_shape == tuple(other.batch_shape) and mine.event_shape == tuple(other.event_shape)
        assert tuple(mine.sample((2,)).shape) == tuple(other.sample((2,)).shape)
    mixed = [p.MixtureSameFamily(p.Categorical(t(scale_a)), p.Normal(t(real_a), t(scale_a))) for p, t in PACKAGES]
    close(mixed[0].mean, mixed[1].mean)
    close(mixed[0].variance, mixed[1].variance)


real_a, scale_a = real(3), positive(3)
DRAWS = 4000


@pytest.mark.parametrize(
    ("name", "parameters", "value"),
    CASES,
    ids=IDS,
)
def test_draws_have_the_mean_and_the_spread(name, parameters, value):
    flow.manual_seed(0)
    mine, other = both(name, parameters)
    drawn = mine.sample((DRAWS,))
    assert tuple(drawn.shape) == (DRAWS, *mine.batch_shape, *mine.event_shape) and not drawn.requires_grad
    x = drawn.double().numpy()
    if name == "Categorical":
        shares = np.stack([(x == k).mean(0) for k in range(parameters[next(iter(parameters))].shape[-1])], -1)
        np.testing.assert_allclose(shares, other.probs.numpy(), atol=0.04)
        return
    sigma = other.stddev.numpy() / np.sqrt(DRAWS)
    assert (np.abs(x.mean(0) - other.mean.numpy()) < 5 * sigma + 1e-6).all()
    if name not in HEAVY:
        np.testing.assert_allclose(x.std(0), other.stddev.numpy(), rtol=0.15)


DIFFERENTIABLE = ["Normal", "Uniform", "Gamma", "Beta", "Dirichlet", "Laplace", "MultivariateNormal"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_flow_through_draws(name):
    flow.manual_seed(0)
    parameters = next(p for n, p, _ in CASES if n == name)
    tensors = {k: flow.tensor(v, requires_grad=True) for k, v in parameters.items()}
    mine = getattr(ours, name)(**tensors)
    (mine.rsample((500,)) * (1 if name != "Dirichlet" else flow.arange(4.0))).mean().backward()
    first = next(iter(tensors.values()))
    other = {k: torch.tensor(v, requires_grad=True) for k, v in parameters.items()}
    mean = getattr(theirs, name)(**other).mean
    (mean * (1 if name != "Dirichlet" else torch.arange(4.0))).mean().backward()
    expected = next(iter(other.values())).grad.numpy()
    np.testing.assert_allclose(first.grad.numpy(), expected, atol=0.03)


GRADIENTS = ["Normal", "Gamma", "Beta", "Categorical", "Dirichlet", "StudentT", "NegativeBinomial"]
GRADIENTS += ["MultivariateNormal"]


@pytest.mark.parametrize(
    ("name", "parameters", "value"),
    [next(case for case in CASES if case[0] == name) for name in GRADIENTS],
    ids=GRADIENTS,
)
def test_gradients_of_log_prob_equal_torchs(name, parameters, value):
    found = []
    for package, tensor in PACKAGES:
        tensors = {k: tensor(v).requires_grad_() if isinstance(v, np.ndarray) else v for k, v in parameters.items()}
        getattr(package, name)(**tensors).log_prob(tensor(value)).sum().backward()
        found.append([t.grad.numpy() for t in tensors.values() if not isinstance(t, int)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_global_parameters_give_the_same_values_and_draws():
    placement, split = flow.placement("cpu", [0, 1, 2, 3]), flow.sbp.split(0)
    loc, scale = flow.tensor(real(8, 2)), flow.tensor(positive(8, 2))
    found = []
    for to in (lambda t: t, lambda t: t.to_global(placement, split)):
        flow.manual_seed(0)
        normal, choice = ours.Normal(to(loc), to(scale)), ours.Categorical(logits=to(loc))
        found.append([normal.rsample((3,)), normal.log_prob(to(loc) + 1), choice.sample(), normal.entropy()])
    for local, spread_out in zip(*found):
        assert spread_out.is_global
        np.testing.assert_allclose(spread_out.numpy(), local.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ours.Normal(0.0, -1.0), "Expected parameter scale of distribution to satisfy the constraint"),
        (lambda: ours.Uniform(1.0, 0.0), "Expected parameter low of distribution to satisfy the constraint LessThan"),
        (lambda: ours.Bernoulli(probs=1.5), "Expected parameter probs"),
        (lambda: ours.Bernoulli(), "Either `probs` or `logits` must be specified"),
        (lambda: ours.Categorical(flow.tensor(0.5)), "must be at least one-dimensional"),
        (lambda: ours.Exponential(1.0).log_prob(flow.tensor(-1.0)), "within the support"),
        (lambda: ours.Normal(0.0, 1.0).log_prob(1.0), "must be a Tensor"),
        (lambda: ours.MultivariateNormal(flow.zeros(2)), "Exactly one of covariance_matrix"),
    ],
)
def test_bad_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_checks_can_be_left_out_and_are_in_traces():
    assert ours.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    ours.Distribution.set_default_validate_args(False)
    try:
        ours.Normal(0.0, -1.0)
    finally:
        ours.Distribution.set_default_validate_args(True)

    @flow.compile
    def score(x):
        return ours.Normal(x, x.exp()).log_prob(x + 1).sum()

    x = flow.tensor([0.1, 0.2])
    expected = theirs.Normal(torch.tensor([0.1, 0.2]), torch.tensor([0.1, 0.2]).exp()).log_prob(
        torch.tensor([1.1, 1.2])
    )
    assert score(x).item() == pytest.approx(expected.sum().item(), rel=1e-6)
