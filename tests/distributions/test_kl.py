"""Divergences equal PyTorch's for every class that PyTorch has one for, and users' own pairs are found."""

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
    "Laplace": (lambda p, t: p.Laplace(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Laplace(t([0.1, 1]), t([1.5, 1]))),
    "Gumbel": (lambda p, t: p.Gumbel(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Gumbel(t([0.1, 1]), t([1.5, 1]))),
    "Uniform": (lambda p, t: p.Uniform(t([0.3, -1]), t([0.5, 2])), lambda p, t: p.Uniform(t([0.1, -2]), t([1.5, 1]))),
    "Exponential": (lambda p, t: p.Exponential(t([0.4, 2.0])), lambda p, t: p.Exponential(t([1.4, 1.0]))),
    "Gamma": (lambda p, t: p.Gamma(t([0.4, 1.5]), t([0.9, 3])), lambda p, t: p.Gamma(t([0.2, 2]), t([1.2, 1]))),
    "Beta": (lambda p, t: p.Beta(t([0.4, 1.5]), t([0.9, 3])), lambda p, t: p.Beta(t([0.2, 2]), t([1.2, 1]))),
    "Dirichlet": (lambda p, t: p.Dirichlet(t([0.4, 1.5])), lambda p, t: p.Dirichlet(t([1.2, 0.7]))),
    "MultivariateNormal": (
        lambda p, t: p.MultivariateNormal(t([[0.1, 0.2, 0.3], [1, 1, 1]]), scale_tril=t(LOWER)),
        lambda p, t: p.MultivariateNormal(t([0.3, 0, 0]), t(np.eye(3, dtype=np.float32) * 2)),
    ),
    "Independent": (
        lambda p, t: p.Independent(p.Normal(t([0.3, -1]), t([0.5, 2])), 1),
        lambda p, t: p.Independent(p.Normal(t([0.1, 1]), t([1.5, 1])), 1),
    ),
    "TransformedDistribution": (
        lambda p, t: p.TransformedDistribution(p.Normal(t([0.3, -1]), t([0.5, 2])), [p.TanhTransform()]),
        lambda p, t: p.TransformedDistribution(p.Normal(t([0.1, 1]), t([1.5, 1])), [p.TanhTransform()]),
    ),
}


def test_every_class_of_pytorch_with_a_divergence_has_one():
    of_one_class = {p.__name__ for p, q in THEIR_PAIRS if p is q and hasattr(ours, p.__name__)}
    assert of_one_class == set(MADE) == {p.__name__ for p, _ in OUR_PAIRS}


@pytest.mark.parametrize("name", sorted(MADE))
def test_divergences_equal_torchs(name):
    close(*[p.kl_divergence(*[make(p, t) for make in MADE[name]]) for p, t in PACKAGES])


def test_uniform_numbers_beyond_the_others_bounds():
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
        ours.kl_divergence(ours.Laplace(0.0, 1.0), ours.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="where q.total_count > p.total_count"):
        ours.kl_divergence(ours.Binomial(3, 0.5), ours.Binomial(4, 0.5))
    vectors = [ours.MultivariateNormal(flow.zeros(n), scale_tril=flow.eye(n)) for n in (2, 3)]
    with pytest.raises(ValueError, match="different event shapes"):
        ours.kl_divergence(*vectors)
    exponentials = [ours.TransformedDistribution(ours.Normal(0.0, 1.0), ours.AffineTransform(0.0, x)) for x in (1, 2)]
    with pytest.raises(NotImplementedError, match="different functions"):
        ours.kl_divergence(*exponentials)
