"""Transforms have PyTorch's values, inverses, Jacobians, shapes and constraints."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.distributions as theirs

import sbpjax as flow
from sbpjax import distributions as ours
from sbpjax.distributions import transforms

RTOL, ATOL = 1e-5, 1e-5
PACKAGES = ((ours, flow.tensor), (theirs, torch.tensor))

# how it is made, the shape of its argument
CASES = {
    "AffineTransform": (lambda p, t: p.AffineTransform(t([0.5, 1, 2]), -2.0), (2, 3)),
    "AffineTransform of events": (lambda p, t: p.AffineTransform(0.5, t([1.0, -2, 3]), event_dim=1), (2, 3)),
    "ComposeTransform": (lambda p, t: p.ComposeTransform([p.ExpTransform(), p.AffineTransform(1, 2)]), (2, 3)),
    "ComposeTransform of dims": (
        lambda p, t: p.ComposeTransform([p.ExpTransform(), p.StickBreakingTransform()]),
        (2, 3),
    ),
    "ExpTransform": (lambda p, t: p.ExpTransform(), (2, 3)),
    "IndependentTransform": (lambda p, t: p.IndependentTransform(p.SigmoidTransform(), 1), (2, 3)),
    "LowerCholeskyTransform": (lambda p, t: p.LowerCholeskyTransform(), (2, 3, 3)),
    "SigmoidTransform": (lambda p, t: p.SigmoidTransform(), (2, 3)),
    "SoftmaxTransform": (lambda p, t: p.SoftmaxTransform(), (2, 3)),
    "SoftplusTransform": (lambda p, t: p.SoftplusTransform(), (2, 3)),
    "StickBreakingTransform": (lambda p, t: p.StickBreakingTransform(), (2, 3)),
    "TanhTransform": (lambda p, t: p.TanhTransform(), (2, 3)),
    "identity_transform": (lambda p, t: p.identity_transform, (2, 3)),
}


def test_every_transform_is_compared():
    assert set(transforms.__all__) < set(theirs.transforms.__all__)
    assert {name.split()[0] for name in CASES} == set(transforms.__all__) - {"Transform"}


@pytest.mark.parametrize("name", sorted(CASES))
def test_transforms_equal_torchs(name):
    make, shape = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found, facts = [], []
    for package, tensor in PACKAGES:
        f, x_ = make(package, tensor), tensor(x).requires_grad_()
        y = f(x_)
        values = [y, f.inv(y.detach())]
        if f.bijective:
            values.append(f.log_abs_det_jacobian(x_, y))
            values.append(f.inv.log_abs_det_jacobian(y, x_))
            values[2].sum().backward() if values[2].requires_grad else y.sum().backward()
            values.append(x_.grad if x_.grad is not None else tensor(0.0))
        found.append(values)
        shapes = tuple(f.forward_shape(x_.shape)), tuple(f.inverse_shape(y.shape))
        known = [(repr(s), s.event_dim, s.is_discrete) for s in (f.domain, f.codomain)]
        facts.append([shapes, known, f.bijective, repr(f), repr(f.inv), f.inv.inv is f])
    assert facts[0] == facts[1]
    for mine, other in zip(*found):
        assert tuple(mine.shape) == tuple(other.shape)
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=RTOL, atol=ATOL)


def test_signs_and_equality():
    assert ours.ComposeTransform([ours.AffineTransform(0, -2.0), ours.ExpTransform()]).sign == -1
    assert ours.TanhTransform().inv.sign == 1
    with pytest.raises(NotImplementedError, match="has no sign"):
        ours.SoftmaxTransform().sign  # noqa: B018
    alike = [lambda: ours.ExpTransform(), lambda: ours.AffineTransform(1, flow.tensor(2.0))]
    alike += [lambda: ours.ComposeTransform([ours.AffineTransform(0, 2.0)]), lambda: ours.TanhTransform().inv]
    for i, one in enumerate(alike):
        for j, other in enumerate(alike):
            assert (one() == other()) is (i == j)


def test_a_cache_gives_back_what_it_was_computed_of():
    f = ours.TanhTransform(cache_size=1)
    x = flow.tensor([50.0])
    y = f(x)
    assert f.inv(y) is x and f(x) is y and ours.TanhTransform().inv(y).item() == np.inf
    whole = ours.ComposeTransform([ours.TanhTransform(), ours.AffineTransform(0, 2)]).with_cache()
    y = whole(x)
    assert whole.inv(y) is x and whole.with_cache(1) is whole and ours.ExpTransform().with_cache()._cache_size == 1
    with pytest.raises(ValueError, match="must be 0 or 1"):
        ours.ExpTransform(cache_size=2)
    f.inv  # noqa: B018
    for again in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert again(flow.tensor(0.0)).item() == 0 and again.inv.inv is again


def test_bad_shapes():
    class Norm(ours.Transform):
        domain, codomain = ours.constraints.real_vector, ours.constraints.positive

    for make in (
        lambda: ours.IndependentTransform(ours.ExpTransform(), 2)(flow.zeros(3)),
        lambda: ours.StickBreakingTransform().forward_shape(()),
        lambda: Norm().event_dim,
        lambda: ours.TransformedDistribution(ours.Normal(0.0, 1.0), ours.StickBreakingTransform()),
        lambda: ours.TransformedDistribution(ours.Normal(0.0, 1.0), "exp"),
    ):
        with pytest.raises(ValueError):
            make()


def test_transformed_distributions_reshape_their_base():
    for package, tensor in PACKAGES:
        base = package.Normal(tensor([0.0, 1]), 1.0)
        wide = package.TransformedDistribution(base, [package.AffineTransform(tensor([[0.0], [1]]), 1.0)])
        sticks = package.TransformedDistribution(base, [package.StickBreakingTransform()])
        facts = [(tuple(d.batch_shape), tuple(d.event_shape), tuple(d.base_dist.batch_shape)) for d in (wide, sticks)]
        assert facts == [((2, 2), (), (2, 2)), ((), (3,), ())] and sticks.expand((4,)).batch_shape == (4,)
        falling = package.TransformedDistribution(package.Uniform(0.0, 1.0), [package.AffineTransform(0.0, -2.0)])
        assert falling.cdf(tensor(-0.5)).item() == pytest.approx(0.75)
        assert falling.icdf(tensor(0.75)).item() == pytest.approx(-0.5)
