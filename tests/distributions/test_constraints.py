"""Constraints say of the same values as PyTorch's whether they are inside; the registries give the same transforms."""

import numpy as np
import pytest
import torch
import torch.distributions.constraints as theirs

import sbpjax as flow
from sbpjax import distributions
from sbpjax.distributions import constraints as ours

LOWER = [[1.0, 0], [0.6, 0.8]]
VECTORS = [[0.5, 0.5], [0.2, 0.9], [1.0, 0.0], [-1.0, 2.0], [3.0, 4.0], [float("nan"), 0.0]]
MATRICES = [LOWER, [[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0], [1, 1]], [[0.0, 0], [0, 1]]]
NUMBERS = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), float("nan")]

# name, how it is made, values
CASES = {
    "boolean": (lambda c: c.boolean, NUMBERS),
    "real": (lambda c: c.real, NUMBERS),
    "positive": (lambda c: c.positive, NUMBERS),
    "nonnegative": (lambda c: c.nonnegative, NUMBERS),
    "nonnegative_integer": (lambda c: c.nonnegative_integer, NUMBERS),
    "positive_integer": (lambda c: c.positive_integer, NUMBERS),
    "unit_interval": (lambda c: c.unit_interval, NUMBERS),
    "greater_than": (lambda c: c.greater_than(1), NUMBERS),
    "greater_than_eq": (lambda c: c.greater_than_eq(1), NUMBERS),
    "less_than": (lambda c: c.less_than(1), NUMBERS),
    "interval": (lambda c: c.interval(-1, 1.5), NUMBERS),
    "half_open_interval": (lambda c: c.half_open_interval(-1, 1.5), NUMBERS),
    "integer_interval": (lambda c: c.integer_interval(-1, 2), NUMBERS),
    "real_vector": (lambda c: c.real_vector, VECTORS),
    "simplex": (lambda c: c.simplex, VECTORS),
    "one_hot": (lambda c: c.one_hot, VECTORS),
    "multinomial": (lambda c: c.multinomial(1), VECTORS),
    "independent": (lambda c: c.independent(c.unit_interval, 1), VECTORS),
    "MixtureSameFamilyConstraint": (lambda c: c.MixtureSameFamilyConstraint(c.positive), NUMBERS),
    "lower_cholesky": (lambda c: c.lower_cholesky, MATRICES),
    "positive_definite": (lambda c: c.positive_definite, MATRICES),
}
LEFT_OUT = set("cat corr_cholesky lower_triangular positive_semidefinite square stack symmetric".split())
NOT_CHECKED = {"Constraint", "dependent", "dependent_property", "is_dependent"}


def test_names_are_pytorchs_without_those_left_out():
    assert set(theirs.__all__) - LEFT_OUT == set(ours.__all__) == set(CASES) | NOT_CHECKED


@pytest.mark.parametrize("name", sorted(CASES))
def test_checks_equal_torchs(name):
    make, values = CASES[name]
    mine, other = make(ours), make(theirs)
    # PyTorch looks no further in a batch of which one matrix is asymmetric, so matrices are asked for one by one
    expected = (
        [other.check(torch.tensor(v)) for v in values] if other.event_dim == 2 else other.check(torch.tensor(values))
    )
    np.testing.assert_array_equal(mine.check(flow.tensor(values)).numpy(), np.asarray(expected))
    assert (mine.is_discrete, mine.event_dim, repr(mine)) == (other.is_discrete, other.event_dim, repr(other))


def test_rectangles_are_not_positive_definite():
    assert ours.positive_definite.check(flow.zeros(2, 3, 4)).tolist() == [False, False]


def test_dependent_constraints():
    known = ours.dependent(is_discrete=True, event_dim=1)
    assert ours.is_dependent(known) and known.is_discrete and known.event_dim == 1
    assert known(event_dim=2).is_discrete and not ours.is_dependent(ours.real)
    for name in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match="cannot be determined statically"):
            getattr(ours.dependent, name)
    with pytest.raises(ValueError, match="Cannot determine validity"):
        ours.dependent.check(flow.zeros(2))
    support = distributions.Uniform.support
    assert ours.is_dependent(support) and support.event_dim == 0 and not support.is_discrete
    assert distributions.Uniform(0.0, 2.0).support.check(flow.tensor([1.0, 3.0])).tolist() == [True, False]


def test_every_class_has_its_constraints_as_pytorch():
    for name in set(dir(torch.distributions)) & set(dir(distributions)):
        other = getattr(torch.distributions, name)
        if not isinstance(other, type) or not issubclass(other, torch.distributions.Distribution):
            continue
        mine = getattr(distributions, name)
        for what in ("has_rsample", "has_enumerate_support"):
            if isinstance(getattr(other, what), bool) and isinstance(getattr(mine, what), bool):
                assert getattr(mine, what) == getattr(other, what), (name, what)
        for what in ("support", "arg_constraints"):
            pair = getattr(mine, what), getattr(other, what)
            if isinstance(pair[1], theirs.Constraint):
                assert ours.is_dependent(pair[0]) == theirs.is_dependent(pair[1]), name
                assert ours.is_dependent(pair[0]) or repr(pair[0]) == repr(pair[1]), name
            elif isinstance(pair[1], dict):
                assert {k: repr(v) for k, v in pair[0].items()} == {k: repr(v) for k, v in pair[1].items()}, name


UNCONSTRAINED = {
    "simplex": (2, 3),
    "lower_cholesky": (2, 3, 3),
}
TO = "real positive greater_than less_than unit_interval interval half_open_interval real_vector simplex independent "
TO += "lower_cholesky"


@pytest.mark.parametrize("name", TO.split())
def test_registries_give_pytorchs_transforms(name):
    make = CASES[name][0]
    x = np.random.default_rng(0).standard_normal(UNCONSTRAINED.get(name, (2, 3))).astype(np.float32)
    for registry in ("biject_to", "transform_to"):
        try:
            other = getattr(torch.distributions, registry)(make(theirs))
        except NotImplementedError:
            with pytest.raises(NotImplementedError, match="Cannot transform"):
                getattr(distributions, registry)(make(ours))
            continue
        mine = getattr(distributions, registry)(make(ours))
        y = mine(flow.tensor(x))
        np.testing.assert_allclose(y.numpy(), other(torch.tensor(x)).numpy(), rtol=2e-6, atol=2e-6)
        assert make(ours).check(y).all() and mine.bijective == other.bijective
        np.testing.assert_allclose(mine(mine.inv(y)).numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def test_registries_take_users_constraints():
    class Even(ours.Constraint):
        pass

    registry = distributions.ConstraintRegistry()

    @registry.register(Even)
    def _even(constraint):
        return distributions.AffineTransform(0, 2)

    registry.register(ours.real, lambda constraint: distributions.ExpTransform())
    assert registry(Even())(flow.tensor(3.0)).item() == 6 and isinstance(
        registry(ours.real), distributions.ExpTransform
    )
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        registry.register(3, lambda constraint: None)
