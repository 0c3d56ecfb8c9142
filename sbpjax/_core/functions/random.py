"""Random tensors and in-place random fills; each draw takes one key from a generator.

Generators are in `_core.tensor.creation.generator`. A global random tensor has the same values as the local one of
the same shape, under any sbp. It cannot be made as a partial sum; a fill of one draws the sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from operator import index as as_int
from typing import Any

import jax
import numpy as np

from sbpjax._core.compiler.eager.evaluator.setting import compiled
from sbpjax._core.ops.dims import fail
from sbpjax._core.ops.randoms import blocks as random_blocks
from sbpjax._core.ops.randoms import random as _random
from sbpjax._core.tensor.creation.creation import _constant, _float_dtype, create_tensor, resolve_destination, size_of
from sbpjax._core.tensor.creation.generator import generator_or_default
from sbpjax._core.tensor.creation.like import empty_like, full_like, place_like
from sbpjax._core.tensor.creation.number_range import check_fits
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.inplace import COPY, check_writable, inplace
from sbpjax._core.tensor.storage.lazy_random import fill, place_to_fill
from sbpjax._core.tensor.storage.payload import put_from
from sbpjax.errors import OpError, OpTypeError, SbpError
from sbpjax.sbp import algebra, partial_sum

from .table.checks import check_elements


def draw(function: Callable[..., jax.Array], *inputs: Tensor, generator=None) -> Tensor:
    """Return the result of a JAX function of a random key, as an op on tensors with gradient.

    Args:
        function: a function ``(key, *arrays, /) -> array``, defined once: it is compiled per function and shapes.
        *inputs: tensors, local or global; their arrays follow the key.
        generator: the generator whose next key it gets; None for the default one.

    Returns:
        A tensor; its sbp is planned from those of the inputs.

    Example:
        >>> draw(lambda key, rate, /: jax.random.exponential(key, rate.shape) / rate, sbpjax.ones(2)).shape
        sbpjax.Size([2])
    """
    return dispatch.run(op_of(_with_typed_key(function)), (generator_or_default(generator).key(), *inputs))


@functools.cache
def _with_typed_key(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    @functools.wraps(function)
    def run(key, *arrays):
        return function(_random._key(key), *arrays)

    return run


def _draw(
    fn,
    static: tuple,
    generator,
    options: tuple[Any, Any, Any],
    operation: str,
    requires_grad: bool = False,
    inputs: tuple = (),
) -> Tensor:
    key, shape = _key(generator, options, operation), dict(static).get("shape", ())
    if 0 in shape:  # JAX makes counters of the other dims: 16 GiB for (2^31, 0)
        fill_static = (("shape", shape), ("dtype", dict(static)["dtype"]), ("value", 0))
        return create_tensor(_constant, fill_static, (), options, operation, requires_grad)
    return create_tensor(fn, static, (key, *inputs), options, operation, requires_grad)


def _key(generator, options: tuple[Any, Any, Any], operation: str):
    """Return the next key of a generator for a draw with these creation options."""
    _, placement, sbp = resolve_destination(*options, operation)
    if placement is not None and algebra.P in algebra.parse(sbp, placement, allow_free=True):
        raise SbpError(
            operation,
            f"sbp={sbp!r}",
            "random creation allows only broadcast or split: a sum of random numbers has another distribution",
            "make it as broadcast, then x.to_global(sbp=...)",
        )
    return generator_or_default(generator).key()


def rand(
    *size, generator=None, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return uniform floats in [0, 1); arguments as `sbpjax.zeros`, and a `generator`.

    Returns:
        The numbers do not depend on the sbp.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> _ = flow.manual_seed(0)
        >>> local = flow.rand(4)
        >>> _ = flow.manual_seed(0)
        >>> flow.rand(4, placement=p, sbp=flow.sbp.split(0)).tolist() == local.tolist()
        True
    """
    static = (("shape", size_of(size, "rand(...)")), ("dtype", _float_dtype(dtype)))
    return _draw(_random.rand, static, generator, (device, placement, sbp), "rand(...)", requires_grad)


def randn(
    *size, generator=None, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return floats of the standard normal distribution; arguments as `sbpjax.zeros`, and a `generator`.

    Returns:
        The numbers do not depend on the sbp.

    Example:
        >>> flow.randn(2, 3).shape
        sbpjax.Size([2, 3])
    """
    static = (("shape", size_of(size, "randn(...)")), ("dtype", _float_dtype(dtype)))
    return _draw(_random.randn, static, generator, (device, placement, sbp), "randn(...)", requires_grad)


def randint(
    low=None,
    high=None,
    size=None,
    *,
    generator=None,
    dtype=None,
    device=None,
    placement=None,
    sbp=None,
    requires_grad=False,
) -> Tensor:
    """Return integers in [low, high); ``randint(high, size)`` starts at 0.

    Args:
        low: the least value; 0 if only one number is given.
        high: the values stay below.
        size: the shape.

    Returns:
        int64 if no ``dtype`` is given. The numbers do not depend on the sbp.

    Raises:
        OpTypeError: no ``high`` or no ``size``.

    Example:
        >>> x = flow.randint(3, (100,))
        >>> x.dtype, x.min().item(), x.max().item()
        (sbpjax.int64, 0, 2)
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    elif low is None:
        low = 0
    if size is None or high is None:
        raise OpTypeError(
            "randint(...)",
            f"low={low!r}, high={high!r}, size={size!r}",
            "randint takes (high, size) or (low, high, size)",
            "sbpjax.randint(0, 10, (2, 3))",
        )
    found = dtypes.int64.np if dtype is None else dtypes.as_dtype(dtype).np
    _check_bounds("randint(...)", as_int(low), as_int(high), found)
    shape = size_of((size,), "randint(...)")
    static = (("shape", shape), ("dtype", found))
    # As inputs, so that one program serves all bounds.
    bounds = _random.integer_bounds(as_int(low), as_int(high), shape)
    return _draw(_random.randint, static, generator, (device, placement, sbp), "randint(...)", requires_grad, bounds)


def _check_bounds(operation: str, low: int, high: int, dtype: np.dtype) -> None:
    """Raise `OpError` unless a dtype holds all integers in [low, high)."""
    if dtype.kind not in "iu":
        return
    info = np.iinfo(dtype)
    for name, value in (("from", low), ("to - 1", high - 1)):
        if low < high and not info.min <= value <= info.max:
            rule = f"{name} is out of bounds for {dtype.name}, whose integers are {info.min} to {info.max}"
            raise OpError(operation, f"{value} for {dtype.name}", rule, "leave out dtype, or draw from fewer integers")


def randperm(
    n: int, *, generator=None, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return the integers below ``n`` in random order.

    Args:
        n: how many.

    Returns:
        int64 if no ``dtype`` is given. The order does not depend on the sbp.

    Raises:
        OpError: ``n`` is negative.

    Example:
        >>> flow.randperm(5).sort().values
        tensor([0, 1, 2, 3, 4])
    """
    if n < 0:
        raise OpError("randperm(n)", f"n={n}", "n must be non-negative", "randperm(len(data))")
    found = dtypes.int64.np if dtype is None else dtypes.as_dtype(dtype).np
    check_fits("randperm(n)", max(n - 1, 0), found)
    static = (("n", as_int(n)), ("dtype", found))
    return _draw(_random.randperm, static, generator, (device, placement, sbp), "randperm(...)", requires_grad)


def normal(
    mean=0.0,
    std=1.0,
    size=None,
    *,
    generator=None,
    dtype=None,
    device=None,
    placement=None,
    sbp=None,
    requires_grad=False,
) -> Tensor:
    """Return normal floats, of a size with numbers for mean and std, or of the shape of tensors given for them.

    Args:
        mean: a number, or a tensor.
        std: a number, or a tensor.
        size: the shape, where both are numbers.

    Returns:
        The numbers do not depend on the sbp.

    Raises:
        OpError: ``std`` is negative.

    Example:
        >>> flow.normal(0.0, 1.0, (2, 3)).shape
        sbpjax.Size([2, 3])
    """
    if isinstance(std, Tensor):
        rule = "normal expects all elements of std >= 0.0"
        check_elements("normal(mean, std)", std, lambda part: bool(part.min() >= 0), rule, "std.abs()")
    elif std < 0:
        raise OpError("normal(mean, std)", f"std={std}", "normal expects std >= 0.0", f"std={-std}")
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        key = generator_or_default(generator).key()
        return dispatch.apply(_random.normal, key, mean, std)
    shape = () if size is None else size_of((size,), "normal(...)")
    static = (("shape", shape), ("dtype", _float_dtype(dtype)))
    options = (device, placement, sbp)
    return _draw(_random.normal, static, generator, options, "normal(...)", requires_grad, (mean, std))


def bernoulli(input: Tensor, p: float | None = None, *, generator=None, dtype=None, inplace: bool = False) -> Tensor:
    """Return 1 with the probabilities in ``input`` (or with ``p``), else 0; in a dtype, or written into ``input``.

    Args:
        input: probabilities.
        p: one probability for all instead.

    Returns:
        The shape and the sbp of ``input``.

    Raises:
        OpError: a probability is outside [0, 1].

    Example:
        >>> flow.bernoulli(flow.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    if inplace or dtype is not None:
        drawn = bernoulli(input, p, generator=generator)
        return input.copy_(drawn) if inplace else drawn.to(dtype)
    if p is not None and not 0 <= p <= 1:
        raise OpError("bernoulli(x, p)", f"p={p}", "bernoulli_ expects p to be in [0, 1]", "bernoulli(x, 0.5)")
    _check_probabilities("bernoulli(x)", input if p is None else None)
    key = generator_or_default(generator).key()
    probabilities = input if p is None else full_like(input, p)  # on the tape, as in torch, where its gradient is 0
    return dispatch.apply(_random.bernoulli, key, probabilities)


def _check_probabilities(operation: str, x) -> None:
    rule = "Expected p_in >= 0 && p_in <= 1: each element is a probability"
    check_elements(
        operation, x, lambda part: bool(part.min() >= 0 and part.max() <= 1), rule, "x.clamp(0, 1), or torch.sigmoid(x)"
    )


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, generator=None) -> Tensor:
    """Return indices drawn by the weights in ``input``.

    Args:
        input: weights ``(C,)`` or ``(N, C)``.
        num_samples: how many are drawn.
        replacement: whether one may be drawn again.

    Returns:
        int64 ``(num_samples,)`` or ``(N, num_samples)``; the draws do not depend on the sbp.

    Raises:
        OpError: a weight is negative or not finite, a row has no weight above 0, or ``num_samples`` is not positive.

    Example:
        >>> flow.multinomial(flow.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
        tensor([1, 1, 1])
    """
    if as_int(num_samples) <= 0:
        rule = f"cannot sample n_sample <= 0 samples, got {num_samples}"
        raise OpError("multinomial(x, num_samples)", f"num_samples={num_samples}", rule, "num_samples=1")
    rule = "probability tensor contains either `inf`, `nan` or element < 0"
    operation = "multinomial(x, num_samples)"
    check_elements(
        operation, input, lambda part: bool(part.min() >= 0 and np.isfinite(part).all()), rule, "x.exp() of logits"
    )
    rule = "invalid multinomial distribution (sum of probabilities <= 0)"
    has_weight = lambda rows: bool((rows > 0).any(-1).all())  # noqa: E731
    check_elements(operation, input, has_weight, rule, "give each row a weight above 0", whole=True)
    key = generator_or_default(generator).key()
    return dispatch.apply(
        _random.multinomial, key, input.detach(), num_samples=as_int(num_samples), replacement=replacement
    )


def poisson(input: Tensor, *, generator=None) -> Tensor:
    """Return Poisson counts with the rates in ``input``."""
    rule = "invalid Poisson rate, expected rate to be non-negative"
    check_elements("poisson(x)", input, lambda part: bool(part.min() >= 0), rule, "x.clamp(min=0)")
    return dispatch.apply(_random.poisson, generator_or_default(generator).key(), input.detach())


def _without_data(input: Tensor, dtype, placement, sbp, requires_grad: bool = False) -> Tensor:
    _, placement, sbp = place_like(input, None, placement, sbp, random=True)
    return empty_like(input, dtype=dtype, placement=placement, sbp=sbp, requires_grad=requires_grad)


def _like(function):
    def like(
        input: Tensor, *, generator=None, dtype=None, device=None, placement=None, sbp=None, requires_grad=False
    ) -> Tensor:
        if input.is_meta and device is None:
            return _without_data(input, dtype, placement, sbp, requires_grad)
        device, placement, sbp = place_like(input, device, placement, sbp, random=True)
        return function(
            *input.shape, generator=generator, dtype=dtype or input.dtype, device=device, placement=placement, sbp=sbp,
            requires_grad=requires_grad,
        )  # fmt: skip

    like.__name__ = like.__qualname__ = f"{function.__name__}_like"
    like.__doc__ = f"Return `{function.__name__}` in the shape, dtype and layout of ``input``, by default."
    return like


rand_like, randn_like = _like(rand), _like(randn)


def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    generator=None,
    dtype=None,
    device=None,
    placement=None,
    sbp=None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `randint` in the shape, dtype and layout of ``input``, unless others are given."""
    low, high = (0, low) if high is None else (low, high)
    if input.is_meta and device is None:
        return _without_data(input, dtype, placement, sbp)
    device, placement, sbp = place_like(input, device, placement, sbp, random=True)
    return randint(
        low,
        high,
        tuple(input.shape),
        generator=generator,
        dtype=dtype or input.dtype,
        device=device,
        placement=placement,
        sbp=sbp,
        requires_grad=requires_grad,
    )


# ---------------------------------------------------------------------------------------------------------- in place


def _fill(x: Tensor, fn, static: tuple, generator, operation: str, inputs: tuple = ()) -> Tensor:
    options = place_to_fill(x)
    check_writable(x, operation)
    if x.is_meta:
        return x
    static = (("shape", tuple(x.shape)), ("dtype", x.dtype.np), *static)
    inputs = (_key(generator, options, operation), *inputs)
    if not _is_copied_to(x) and fill(x, fn, static, inputs, options, operation):
        return x
    return _write(x, create_tensor(fn, static, inputs, options, operation))


def _is_copied_to(x: Tensor) -> bool:
    """Return whether a write to a tensor is an op: one for the tape, or the conversion into a partial sum."""
    return (x.requires_grad and mode.grad) or (x.is_global and partial_sum in x.sbp)


def _write(x: Tensor, value: Tensor) -> Tensor:
    if _is_copied_to(x):
        return inplace(x, COPY, (value,))
    put_from(x, value)
    return x


def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator=None) -> Tensor:
    """Write uniform floats in [a, b).

    Args:
        a: the least value.
        b: the values stay below.

    Returns:
        The tensor, in its sbp, on which the numbers do not depend.

    Raises:
        OpValueError: ``a`` is above ``b``, or one of them is not finite.

    Example:
        >>> x = flow.empty(100).uniform_(2, 3)
        >>> (x >= 2).all() and (x < 3).all()
        tensor(True)
    """
    if not (a <= b and math.isfinite(b - a)):
        fail("value", "x.uniform_(...)", f"a={a}, b={b}", "a is not above b, and both are finite", "x.uniform_(0, 1)")
    for bound in (a, b):
        check_fits("x.uniform_(...)", float(bound), self.dtype.np)
    return _fill(self, _random.uniform, (("low", float(a)), ("high", float(b))), generator, "uniform_")


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator=None) -> Tensor:
    """Write normal floats.

    Args:
        mean: their mean.
        std: their deviation.

    Returns:
        The tensor, in its sbp, on which the numbers do not depend.

    Raises:
        OpError: ``std`` is negative.

    Example:
        >>> flow.empty(2, 3).normal_().shape
        sbpjax.Size([2, 3])
    """
    if std < 0:
        raise OpError("x.normal_(...)", f"std={std}", "normal expects std >= 0.0", "x.normal_(0, 1)")
    return _fill(self, _random.normal, (), generator, "normal_", (float(mean), float(std)))


def trunc_normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *, generator=None
) -> Tensor:
    """Write normal floats limited to [a, b] by drawing again."""
    static = (("mean", float(mean)), ("std", float(std)), ("a", float(a)), ("b", float(b)))
    return _fill(self, _random.trunc_normal, static, generator, "trunc_normal_")


@compiled
def by_inverse_(
    self: Tensor, low: float, high: float, std: float, mean: float, a: float, b: float, generator=None
) -> Tensor:
    """Write normal floats limited to [a, b], by the inverse of erf at uniform numbers in [low, high).

    Args:
        low: erf's value at a.
        high: erf's value at b.
        std: their deviation before the limits.
        mean: their mean before the limits.
        a: the least value.
        b: the greatest value.
        generator: the source of the numbers.
    """
    operation = "trunc_normal_"
    options = place_to_fill(self)
    check_writable(self, operation)
    if self.is_meta:
        return self
    static = (("shape", tuple(self.shape)), ("dtype", self.dtype.np), ("low", low), ("high", high))
    key = generator_or_default(generator).key()
    # Each op rounds, to a narrow dtype and before the mean is added; a block's program would not.
    if self.dtype in (dtypes.float32, dtypes.float64) and mean == 0:
        numbers = [np.asarray(x, self.dtype.np) for x in (std * math.sqrt(2.0), a, b)]
        then = random_blocks.inverse_of_erf, [jax.device_put(x) for x in numbers]
        if not _is_copied_to(self) and fill(self, _random.uniform, static, (key,), options, operation, then):
            return self
    drawn = create_tensor(_random.uniform, static, (key,), options, operation)
    return _write(self, drawn.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b))


def exponential_(self: Tensor, lambd: float = 1.0, generator=None) -> Tensor:
    """Write floats of the exponential distribution."""
    if not lambd > 0:
        rule = f"exponential_ expects lambda > 0.0, but found lambda={lambd}"
        raise OpError(f"x.exponential_({lambd})", f"lambd={lambd}", rule, "x.exponential_(1.0)")
    return _fill(self, _random.exponential, (("lambd", float(lambd)),), generator, "exponential_")


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator=None) -> Tensor:
    """Write floats of the Cauchy distribution."""
    if not sigma > 0:
        rule = f"cauchy_ expects sigma > 0.0, but found sigma={sigma}"
        raise OpError(f"x.cauchy_({median}, {sigma})", f"sigma={sigma}", rule, "x.cauchy_(0, 1)")
    return _fill(self, _random.cauchy, (("median", float(median)), ("sigma", float(sigma))), generator, "cauchy_")


def random_(self: Tensor, start: int | None = None, to: int | None = None, *, generator=None) -> Tensor:
    """Write integers in [start, to); with one number, in [0, number)."""
    low, high = (start, to) if to is not None else (0, _limit(self.dtype) if start is None else start)
    if low >= high:
        rule = f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        raise OpError("x.random_(...)", f"from={low}, to={high}", rule, "x.random_(0, 10)")
    _check_bounds("x.random_(...)", as_int(low), as_int(high), self.dtype.np)
    bounds = _random.integer_bounds(as_int(low), as_int(high), self.shape)
    return _fill(self, _random.randint, (), generator, "random_", bounds)


def _limit(dtype) -> int:
    if dtype.is_floating_point:
        return 2 ** {"float16": 11, "bfloat16": 8, "float32": 24}.get(dtype.name, 53)
    return dtypes.iinfo(dtype).max if dtype.name != "bool" else 2


def bernoulli_(self: Tensor, p=0.5, *, generator=None, dtype=None) -> Tensor:
    """Write 1 with probability ``p`` (a number or a tensor of probabilities), else 0; ``dtype`` is the tensor's own."""
    if dtype is not None and dtypes.as_dtype(dtype) != self.dtype:
        rule = f"a tensor keeps its dtype, {self.dtype!r}, when it is written to"
        raise OpTypeError("x.bernoulli_(dtype=...)", f"dtype={dtype}", rule, "x = x.bernoulli(dtype=...)")
    check_writable(self, "bernoulli_")
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise OpError("x.bernoulli_(p)", f"p={p}", "bernoulli_ expects p to be in [0, 1]", "x.bernoulli_(0.5)")
    _check_probabilities("x.bernoulli_(p)", p)
    probabilities = p if isinstance(p, Tensor) else full_like(self, p, dtype=dtypes.float32)
    key = generator_or_default(generator).key()
    return inplace(self, COPY, (dispatch.apply(_random.bernoulli, key, probabilities).to(self.dtype),))
