"""Draws of distributions whose mean says little, by Kolmogorov-Smirnov; gradients through relaxed draws."""

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
import torch.distributions as theirs

import sbpjax as flow
from sbpjax import distributions as ours

DRAWS = 3000
LEAST = 1e-3  # the p-value below which draws are taken for another distribution's; the seeds are fixed


def drawn(distribution):
    flow.manual_seed(0)
    return distribution.sample((DRAWS,)).double().numpy()


def assert_from(x, cdf):
    assert np.isfinite(x).all() and scipy.stats.kstest(x, cdf).pvalue > LEAST


def test_half_cauchy():
    assert_from(drawn(ours.HalfCauchy(2.0)), scipy.stats.halfcauchy(scale=2.0).cdf)


@pytest.mark.parametrize("concentration", [1e-30, 1e-3, 0.7, 4.0, 1e3, 1e6])
def test_von_mises(concentration):
    x = drawn(ours.VonMises(flow.tensor([3.0, -0.5]), concentration))
    assert (np.abs(x) <= np.pi + 1e-6).all()
    for i, loc in enumerate((3.0, -0.5)):
        apart = (x[:, i] - loc + np.pi) % (2 * np.pi) - np.pi
        if concentration < 1e3:
            assert_from(apart, scipy.stats.vonmises(concentration).cdf)
        else:  # next to a normal number; the angle itself is rounded to float32
            assert_from(
                apart + np.random.default_rng(0).normal(0, 1e-7, DRAWS), scipy.stats.norm(scale=concentration**-0.5).cdf
            )


def test_von_mises_of_endless_concentration():
    np.testing.assert_allclose(drawn(ours.VonMises(0.5, float("inf"))), 0.5, atol=1e-6)


def test_relaxed_bernoulli():
    probs = np.array([0.2, 0.7])
    x = drawn(ours.RelaxedBernoulli(flow.tensor(1.5), flow.tensor(probs, dtype=flow.float32)))
    for i, p in enumerate(probs):
        assert_from(np.log(x[:, i] / (1 - x[:, i])) * 1.5 - np.log(p / (1 - p)), scipy.stats.logistic().cdf)


def test_relaxed_categories():
    x = drawn(ours.RelaxedOneHotCategorical(flow.tensor(0.7), flow.tensor([[0.2, 0.3, 0.5]])))[:, 0]
    np.testing.assert_allclose(x.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose([(x.argmax(-1) == i).mean() for i in range(3)], [0.2, 0.3, 0.5], atol=0.03)
    # differences of two Gumbel numbers are logistic
    assert_from(0.7 * np.log(x[:, 2] / x[:, 0]) - np.log(0.5 / 0.2), scipy.stats.logistic().cdf)


def test_logistic_normal():
    x = drawn(ours.LogisticNormal(flow.tensor([0.3, -1.0]), flow.tensor([0.5, 2.0])))
    numbers = theirs.StickBreakingTransform().inv(torch.tensor(x)).numpy()
    for i, (loc, scale) in enumerate(((0.3, 0.5), (-1.0, 2.0))):
        assert_from(numbers[:, i], scipy.stats.norm(loc, scale).cdf)


@pytest.mark.parametrize(("dim", "concentration"), [(2, 0.7), (4, 2.0)])
def test_correlations(dim, concentration):
    x = drawn(ours.LKJCholesky(dim, concentration))
    both = x @ np.swapaxes(x, -1, -2)
    shape = concentration + dim / 2 - 1
    for i in range(dim):
        for j in range(i):
            assert_from((both[:, i, j] + 1) / 2, scipy.stats.beta(shape, shape).cdf)


@pytest.mark.parametrize(
    ("mine", "cdf"),
    [
        (lambda: ours.Weibull(2.0, 1.5), scipy.stats.weibull_min(1.5, scale=2.0).cdf),
        (lambda: ours.Pareto(2.0, 1.5), scipy.stats.pareto(1.5, scale=2.0).cdf),
        (lambda: ours.InverseGamma(1.5, 2.0), scipy.stats.invgamma(1.5, scale=2.0).cdf),
        (lambda: ours.FisherSnedecor(3.0, 5.0), scipy.stats.f(3, 5).cdf),
        (lambda: ours.GeneralizedPareto(1.0, 2.0, 0.5), scipy.stats.genpareto(0.5, 1, 2).cdf),
        (lambda: ours.GeneralizedPareto(1.0, 2.0, 0.0), scipy.stats.expon(1, 2).cdf),
        (lambda: ours.Kumaraswamy(2.0, 3.0), lambda x: 1 - (1 - x**2) ** 3),
    ],
    ids=["Weibull", "Pareto", "InverseGamma", "FisherSnedecor", "GeneralizedPareto", "exponential", "Kumaraswamy"],
)
def test_heavy_tails(mine, cdf):
    assert_from(drawn(mine()), cdf)


def test_gradients_of_relaxed_draws():
    logits, temperature = flow.tensor([0.3, -1.0], requires_grad=True), 1.5
    x = ours.RelaxedBernoulli(flow.tensor(temperature), logits=logits).rsample()
    x.sum().backward()
    x = x.detach().numpy()
    np.testing.assert_allclose(logits.grad.numpy(), x * (1 - x) / temperature, rtol=1e-4)
    weights = flow.tensor([0.3, -1.0, 0.0], requires_grad=True)
    y = ours.RelaxedOneHotCategorical(flow.tensor(temperature), logits=weights).rsample()
    y[0].backward()
    y = y.detach().numpy()
    np.testing.assert_allclose(weights.grad.numpy(), y[0] * (np.eye(3)[0] - y) / temperature, rtol=1e-4, atol=1e-6)


def test_gradients_of_inverse_gamma_draws():
    """Of the logarithms of draws: the mean's own gradient has no finite variance to compare within."""
    flow.manual_seed(0)
    concentration, rate = (flow.tensor(x, requires_grad=True) for x in (2.5, 1.5))
    ours.InverseGamma(concentration, rate).rsample((DRAWS,)).log().mean().backward()
    assert rate.grad.item() == pytest.approx(1 / 1.5, rel=1e-4)
    assert concentration.grad.item() == pytest.approx(-scipy.special.polygamma(1, 2.5), abs=0.03)


def test_global_parameters_give_the_same_draws():
    placement, split = flow.placement("cpu", [0, 1, 2, 3]), flow.sbp.split(0)
    loc = flow.tensor(np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32))
    found = []
    for to in (lambda t: t, lambda t: t.to_global(placement, split)):
        flow.manual_seed(0)
        makes = [
            ours.VonMises(to(loc), to(loc.exp())),
            ours.Weibull(to(loc.exp()), 1.5),
            ours.HalfCauchy(to(loc.exp())),
        ]
        found.append([distribution.sample() for distribution in makes])
    for local, spread_out in zip(*found):
        assert spread_out.is_global
        np.testing.assert_allclose(spread_out.numpy(), local.numpy(), rtol=2e-6, atol=2e-6)
