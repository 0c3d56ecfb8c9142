"""Random ops: shape, dtype, range and moments of what they give; the same numbers for a seed, whatever the layout."""

from __future__ import annotations

import numpy as np

from tests.op_specs.engine import Different, op
from tests.support.generate import Input, call

MANY = (40, 50)  # enough for means within 0.15 of a standard deviation: 2000 samples have 0.022


def _moments(mean: float, std: float, low=-np.inf, high=np.inf, dtype: str = "float32"):
    def check(plain, made):
        x = plain.array.astype(np.float64)
        if plain.dtype != dtype:
            raise Different(f"dtype {plain.dtype}; wanted {dtype}")
        if x.size < 1000:
            return
        if abs(x.mean() - mean) > 0.15 * std + 1e-9 or abs(x.std() - std) > 0.15 * std + 1e-9:
            raise Different(f"mean {x.mean():.3f}, standard deviation {x.std():.3f}; wanted {mean}, {std}")
        if x.min() < low or x.max() > high:
            raise Different(f"from {x.min()} to {x.max()}; wanted [{low}, {high}]")

    return check


def _made(name: str, check, *args, **kwargs) -> None:
    @op(name, check=check, grad=False)
    def make(g):
        return call(*args, **kwargs)


_made("rand", _moments(0.5, 12**-0.5, 0, 1), *MANY)
_made("randn", _moments(0, 1), *MANY)
_made("randint", _moments(4.5, 2.87, 0, 9, "int64"), 0, 10, MANY)
_made("normal", _moments(1.0, 2.0), 1.0, 2.0, MANY)


def _like(name: str, check, *args) -> None:
    @op(name, check=check, grad=False)
    def make(g):
        return call(g.tensor(MANY, "float32", views=False), *args)


_like("rand_like", _moments(0.5, 12**-0.5, 0, 1))
_like("randn_like", _moments(0, 1))
_like("randint_like", _moments(4.5, 2.87, 0, 9), 0, 10)


def _permutation(plain, made):
    if sorted(plain.array.tolist()) != list(range(made.args[0])) or plain.dtype != "int64":
        raise Different(f"{plain} is no permutation")


_made("randperm", _permutation, 20)


@op("bernoulli", check=_moments(0.3, 0.458, 0, 1), grad=False)
def _(g):
    return call(Input(np.full(MANY, 0.3, np.float32)))


@op("poisson", check=_moments(3.0, 3**0.5, 0), grad=False)
def _(g):
    return call(Input(np.full(MANY, 3.0, np.float32)))


def _drawn(plain, made):
    if plain.dtype != "int64" or plain.array.shape != (2000,) or set(np.unique(plain.array)) != {0, 2}:
        raise Different(f"drew {np.unique(plain.array)}; wanted 0 and 2, whose weights are not zero")
    if abs((plain.array == 0).mean() - 0.25) > 0.05:
        raise Different(f"0 has a share of {(plain.array == 0).mean()}; wanted 0.25")


@op("multinomial", check=_drawn, grad=False)
def _(g):
    return call(Input(np.array([1.0, 0.0, 3.0], np.float32)), 2000, replacement=True)


def _dropped(plain, made):
    kept = plain.array != 0
    if abs(kept.mean() - 0.75) > 0.06 or not np.allclose(plain.array[kept], 1 / 0.75):
        raise Different(
            f"kept {kept.mean()} of the elements, scaled to {plain.array[kept][:3]}; wanted 0.75, {1 / 0.75}"
        )


@op("nn.functional.dropout", check=_dropped, grad=False)
def _(g):
    return call(Input(np.ones(MANY, np.float32)), p=0.25)


def _inplace(name: str, check, *args) -> None:
    @op(f"Tensor.{name}", check=check, grad=False)
    def make(g):
        return call(Input(np.zeros(MANY, np.float32), grad=False), *args)


_inplace("normal_", _moments(1.0, 2.0), 1.0, 2.0)
_inplace("uniform_", _moments(1.0, 1.155, -1, 3), -1.0, 3.0)
_inplace("exponential_", _moments(0.5, 0.5, 0), 2.0)
_inplace("bernoulli_", _moments(0.3, 0.458, 0, 1), 0.3)
_inplace("random_", _moments(4.5, 2.87, 0, 9), 0, 10)


def _on_simplex(plain, made):
    if not np.allclose(plain.array.sum(1), 1, atol=1e-5) or abs(plain.array.mean() - 1 / plain.array.shape[1]) > 1e-3:
        raise Different(f"rows sum to {plain.array.sum(1)[:3]}; wanted 1")


@op("nn.functional.gumbel_softmax", check=_on_simplex, grad=False)
def _(g):
    return call(g.tensor(MANY, "float32", views=False), **g.maybe(tau=0.5, hard=True))


@op("nn.functional.feature_alpha_dropout", method=False)
def _(g):
    return call(g.tensor((2, 3, 4), "f"), p=g.pick(0.0, 0.5), training=False)


_inplace("cauchy_", lambda plain, made: None if abs(np.median(plain.array) - 1) < 0.3 else _fail(plain), 1.0, 2.0)
_inplace("trunc_normal_", _moments(0.0, 0.88, -2, 2))


def _fail(plain):
    raise Different(f"median {np.median(plain.array)}; wanted 1")
