"""Divergences equal PyTorch's for every pair of classes that PyTorch has, and users' own pairs are found."""

import functools

import numpy as np
import pytest
import torch
import torch.distributions as theirs
from torch.distributions.kl import _KL_REGISTRY as THEIR_PAIRS

import sbpjax as flow
from sbpjax import distributions as ours
from sbpjax.distributions.kl import _KL_REGISTRY as OUR_PAIRS
from tests.support import compare

RTOL, ATOL = 2e-5, 2e-5
close = functools.partial(compare.close, rtol=RTOL, atol=ATOL)
PACKAGES = ((ours, flow.tensor), (theirs, torch.tensor))
LOWER = [[1.0, 0, 0], [0.3, 0.8, 0], [-0.2, 0.1, 1.2]]
TALL = [[0.5, 0.1], [-0.3, 0.7], [0.2, -0.4]]

# for each class two distributions
MADE = {
    "Bernoulli": (lambda p, t: p.Bernoulli(t([0.2, 0.7])), lambda p, t: p.Bernoulli(t([0.4, 1.0]))),
    "Binomial": (lambda p, t: p.Binomial(4, t([0.2, 0.7])), lambda p, t: p.Binomial(t([4.0, 3.0]), t([0.4, 0.6]))),
    "Categorical": (
        lambda p, t: p.Categorical(t([[0.2, 0.8], [0.0, 1.0]])),
        lambda p, t: p.Categorical(logits=t([[0.2, 0.8], [0.0, 1.0]])),
    ),
    "OneHotCategorical": (
        lambda p, t: p.OneHotCategorical(t([[0.2, 0.8], [0.5, 0.5]])),
        lambda p, t: p.OneHotCategorical(t([[0.4, 0.6], [0.0, 1.0]])),
    ),
    "Geometric": (lambda p, t: p.Geometric(t([0.2, 0.7])), lambda p, t: p.Geometric(t([0.4, 0.6]))),
    "Poisson": (lambda p, t: p.Poisson(t([0.4, 2.0])), lambda p, t: p.Poisson(t([1.4, 1.0]))),
    "Normal": (lambda p, t: p.Normal(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Normal(t([0.1, 1]), t([1.5, 1]))),
    "HalfNormal": (lambda p, t: p.HalfNormal(t([0.3, 1])), lambda p, t: p.HalfNormal(t([0.8, 2]))),
    "Cauchy": (lambda p, t: p.Cauchy(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Cauchy(t([0.1, 1]), t([1.5, 1]))),
    "Laplace": (lambda p, t: p.Laplace(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Laplace(t([0.1, 1]), t([1.5, 1]))),
    "Gumbel": (lambda p, t: p.Gumbel(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Gumbel(t([0.1, 1]), t([1.5, 1]))),
    "Uniform": (lambda p, t: p.Uniform(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Uniform(t([0.1, -2]), t([1.5, 1]))),
    "Exponential": (lambda p, t: p.Exponential(t([0.4, 2.0])), lambda p, t: p.Exponential(t([1.4, 1.0]))),
    "Pareto": (lambda p, t: p.Pareto(t([0.4, 1.5]), t([0.9, 3])), lambda p, t: p.Pareto(t([0.2, 2]), t([1.2, 1]))),
    "Gamma": (lambda p, t: p.Gamma(t([0.4, 1.5]), t([0.9, 3])), lambda p, t: p.Gamma(t([0.2, 2]), t([1.2, 1]))),
    "Beta": (lambda p, t: p.Beta(t([0.4, 1.5]), t([0.9, 3])), lambda p, t: p.Beta(t([0.2, 2]), t([1.2, 1]))),
    "Dirichlet": (lambda p, t: p.Dirichlet(t([0.4, 1.5])), lambda p, t: p.Dirichlet(t([1.2, 0.7]))),
    "ContinuousBernoulli": (
        lambda p, t: p.ContinuousBernoulli(t([0.2, 0.5])),
        lambda p, t: p.ContinuousBernoulli(logits=t([0.4, -1.5])),
    ),
    "MultivariateNormal": (
        lambda p, t: p.MultivariateNormal(t([[0.1, 0.2, 0.3], [1, 1, 1]]), scale_tril=t(LOWER)),
        lambda p, t: p.MultivariateNormal(t([0.3, 0, 0]), t(np.eye(3, dtype=np.float32) * 2)),
    ),
    "LowRankMultivariateNormal": (
        lambda p, t: p.LowRankMultivariateNormal(t([[0.1, 0.2, 0.3], [1, 1, 1]]), t(TALL), t([0.5, 1, 2])),
        lambda p, t: p.LowRankMultivariateNormal(t([0.3, 0, 0]), -t(TALL).flip(0), t([1.0, 1, 0.7])),
    ),
    "Independent": (
        lambda p, t: p.Independent(p.Normal(t([0.3, -1]), t([0.5, 2])), 1),
        lambda p, t: p.Independent(p.Normal(t([0.1, 1]), t([1.5, 1])), 1),
    ),
    "TransformedDistribution": (
        lambda p, t: p.TransformedDistribution(p.Normal(t([0.3, -1]), t([0.5, 2])), [p.TanhTransform()]),
        lambda p, t: p.TransformedDistribution(p.Normal(t([0.1, 1]), t([1.5, 1])), [p.TanhTransform()]),
    ),
    "ExponentialFamily": (  # by Wishart, which has no formula of its own
        lambda p, t: p.Wishart(t(4.5), scale_tril=t(LOWER)),
        lambda p, t: p.Wishart(t(5.5), scale_tril=t(LOWER).transpose(0, 1).tril() + t(np.eye(3, dtype=np.float32))),
    ),
}
PAIRS = {p.__name__: sorted(q.__name__ for first, q in THEIR_PAIRS if first is p) for p, _ in THEIR_PAIRS}


def test_there_are_all_of_pytorchs_pairs():
    names = [{(p.__name__, q.__name__) for p, q in pairs} for pairs in (OUR_PAIRS, THEIR_PAIRS)]
    assert names[1] <= names[0] and set(PAIRS) <= set(MADE)


@pytest.mark.parametrize("first", sorted(PAIRS))
def test_divergences_equal_torchs(first):
    for second in PAIRS[first]:
        found = [p.kl_divergence(MADE[first][0](p, t), MADE[second][1](p, t)) for p, t in PACKAGES]
        if (first, second) == ("ContinuousBernoulli", "Uniform"):
            # PyTorch asks whether the uniform's bounds lie inside [0, 1] where it means outside; log 3 - the entropy, 0
            found[1] = torch.tensor([np.inf, np.log(3.0)])
        close(*found)


def test_a_uniform_number_around_the_unit_interval():
    p, q = ours.ContinuousBernoulli(0.3), ours.Uniform(-0.5, 1.5)
    expected = np.log(2) - theirs.ContinuousBernoulli(torch.tensor(0.3)).entropy()
    close(ours.kl_divergence(p, q), expected.float())
    wide, narrow = ([p.Uniform(-x, x) for x in (2.0, 1.0)] for p in (ours, theirs))
    for a, b in ((0, 1), (1, 0)):
        close(ours.kl_divergence(wide[a], wide[b]), theirs.kl_divergence(narrow[a], narrow[b]))


def test_subclasses_and_pairs_of_ones_own():
    class Mine(ours.Normal):
        pass

    class Its(Mine):
        pass

    normal, mine = ours.Normal(0.0, 1.0), Mine(0.0, 1.0)
    assert ours.kl_divergence(mine, ours.Normal(1.0, 1.0)).item() == pytest.approx(0.5)
    ours.register_kl(Mine, ours.Normal)(lambda p, q: flow.tensor(7.0))
    ours.register_kl(ours.Normal, Mine)(lambda p, q: flow.tensor(8.0))
    try:
        assert ours.kl_divergence(Its(0.0, 1.0), normal).item() == 7 and ours.kl_divergence(normal, mine).item() == 8
        with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
            assert ours.kl_divergence(mine, mine).item() == 7
    finally:
        for pair in ((Mine, ours.Normal), (ours.Normal, Mine)):
            del OUR_PAIRS[pair]
        ours.kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass"):
        ours.register_kl(ours.Normal, 3)


def test_what_has_no_divergence_says_so():
    with pytest.raises(NotImplementedError, match="No KL"):
        ours.kl_divergence(ours.Cauchy(0.0, 1.0), ours.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="where q.total_count > p.total_count"):
        ours.kl_divergence(ours.Binomial(3, 0.5), ours.Binomial(4, 0.5))
    vectors = [ours.MultivariateNormal(flow.zeros(n), scale_tril=flow.eye(n)) for n in (2, 3)]
    with pytest.raises(ValueError, match="different event shapes"):
        ours.kl_divergence(*vectors)
    exponentials = [ours.TransformedDistribution(ours.Normal(0.0, 1.0), ours.AffineTransform(0.0, x)) for x in (1, 2)]
    with pytest.raises(NotImplementedError, match="different functions"):
        ours.kl_divergence(*exponentials)
