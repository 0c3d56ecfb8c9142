"""Matrix and vector products: each a single ``dot_general``, plus a transpose where the dims need it.

`contract` is the core: it multiplies two arrays whose dims carry labels, as in einsum, and never materialises a
broadcast batch. Worked case: ``matmul`` of (B, 1, M, K) and (H, K, N) has the labels ``b·mk`` and ``hkn``: B and M
are free dims of the left, H and N of the right, one contraction gives (B, M, H, N), one transpose (B, H, M, N). A
split of B, H, M or N passes straight through, a split of K gives partial_sum.
"""

from __future__ import annotations

from jax import lax

from ..arithmetic import mul
from ..dims import fail, same_dtype
from ..promote import BOOL, broadcast_to, cast


def contract(x, x_labels: str, y, y_labels: str, out_labels: str):
    """Multiply two labelled arrays and sum the labels that are not in the output.

    Args:
        x: array with one dim per label, no label twice; a summed label is in both, or in neither output nor the other.
        x_labels: one character per dim of x.
        y: array, likewise; dims of size 1 against a larger one broadcast.
        y_labels: one character per dim of y.
        out_labels: the labels of the result, in order.
    """
    sizes = {}
    for labels, z in ((x_labels, x), (y_labels, y)):
        for label, size in zip(labels, z.shape):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    x, x_labels = _sum_labels(x, x_labels, y_labels, out_labels, sizes)
    y, y_labels = _sum_labels(y, y_labels, x_labels, out_labels, sizes)
    shared = [c for c in x_labels if c in y_labels]
    batch = [c for c in out_labels if c in shared]
    inner = [c for c in shared if c not in batch]
    numbers = (
        (tuple(x_labels.index(c) for c in inner), tuple(y_labels.index(c) for c in inner)),
        (tuple(x_labels.index(c) for c in batch), tuple(y_labels.index(c) for c in batch)),
    )
    if not inner and len(shared) == len(x_labels) == len(y_labels):
        got, labels = lax.mul(x, _order_labels(y, y_labels, x_labels)), x_labels
    else:
        got = lax.dot_general(x, y, numbers)
        labels = "".join(batch) + "".join(c for z in (x_labels, y_labels) for c in z if c not in shared)
    missing = [c for c in out_labels if c not in labels]
    if missing:  # size 1 in both: squeezed on one side and summed on none
        got, labels = lax.expand_dims(got, tuple(range(got.ndim, got.ndim + len(missing)))), labels + "".join(missing)
    return _order_labels(got, labels, out_labels)


def _sum_labels(x, labels: str, other: str, out: str, sizes: dict):
    """Sum the labels that only x has and the output lacks; squeeze x's dims of size 1 that broadcast."""
    alone = tuple(i for i, c in enumerate(labels) if c not in other and c not in out)
    if alone:
        x, labels = lax.reduce_sum(x, alone), "".join(c for i, c in enumerate(labels) if i not in alone)
    ones = tuple(i for i, c in enumerate(labels) if x.shape[i] == 1 and sizes[c] != 1)
    if ones:
        x, labels = lax.squeeze(x, ones), "".join(c for i, c in enumerate(labels) if i not in ones)
    return x, labels


def _order_labels(x, labels: str, wanted: str):
    order = tuple(labels.index(c) for c in wanted)
    return x if order == tuple(range(len(order))) else lax.transpose(x, order)


_BATCH = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def matmul(x, y, /, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0):
    """Return the matrix product, with 1-D vectors and broadcast batch dims.

    Args:
        x: ``(K,)`` or ``(..., M, K)``; ``(..., K, M)`` with ``transpose_a``.
        y: ``(K,)`` or ``(..., K, N)``; ``(..., N, K)`` with ``transpose_b``.
        transpose_a: swap the last two dims of x, at no cost.
        transpose_b: swap the last two dims of y, at no cost.
        alpha: factor of the result.

    Returns:
        ``(..., M, N)``, without M or N where an input is a vector; partial_sum where K is split.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(1))
        >>> w = flow.ones(6, 2, placement=p, sbp=flow.sbp.split(0))
        >>> (x @ w).sbp, (x @ w)[0].tolist()
        ((sbpjax.sbp.partial_sum,), [6.0, 6.0])
    """
    same_dtype("matmul(x, y)", x, y)
    if x.ndim == 0 or y.ndim == 0:
        rule = f"Tensor {'a' if x.ndim == 0 else 'b'}'s dim should >= 1"
        fail("shape", "matmul(x, y)", f"shapes {x.shape} and {y.shape}", rule, "use x * y")
    left = "k" if x.ndim == 1 else _BATCH[: x.ndim - 2][::-1] + ("km" if transpose_a else "mk")
    right = "k" if y.ndim == 1 else _BATCH[: y.ndim - 2][::-1] + ("nk" if transpose_b else "kn")
    sizes = dict(zip(left, x.shape))
    for label, size in zip(right, y.shape):
        if label in sizes and sizes[label] != size and (label == "k" or 1 not in (sizes[label], size)):
            fail(
                "shape",
                "matmul(x, y)",
                f"shapes {x.shape} and {y.shape}",
                f"Matmul dim not match, got {sizes[label]} of mat1 and {size} of mat2, please check input!",
                "transpose or reshape one of them",
            )
    batch = _BATCH[: max(x.ndim, y.ndim, 2) - 2][::-1]
    out = contract(x, left, y, right, batch + "m" * (x.ndim > 1) + "n" * (y.ndim > 1))
    return out if alpha == 1 else lax.mul(out, cast(alpha, out.dtype))


def _check_ranks(op: str, **arrays) -> None:
    for name, (x, ndim) in arrays.items():
        if x.ndim != ndim:
            rule = f"Expected {ndim}-dimensional tensor, but got {x.ndim}-dimensional tensor for argument"
            rule += f" #{1 + (name != 'x')}"
            if ndim == 2:
                rule = f"{'self' if name == 'x' else 'mat2'} must be a matrix: {name} has 2 dims, got {x.ndim}"
            fail("shape", op, f"{name} of shape {x.shape}", rule, "use matmul")


def mm(x, y, /):
    """Return the product of two matrices.

    Raises:
        OpError: one is no matrix, or the sizes do not fit.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(1))
        >>> w = flow.ones(6, 2, placement=p, sbp=flow.sbp.split(0))
        >>> flow.mm(x, w).sbp, flow.mm(x, w)[0].tolist()
        ((sbpjax.sbp.partial_sum,), [6.0, 6.0])
    """
    _check_ranks("mm(x, y)", x=(x, 2), y=(y, 2))
    return matmul(x, y)


def bmm(x, y, /, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0):
    """Return the products of two stacks of matrices, ``(B, M, K)`` and ``(B, K, N)``; options as in `matmul`.

    Args:
        transpose_a: swap the last two dims of ``x`` first.
        transpose_b: swap the last two dims of ``y`` first.
        alpha: factor of the product.

    Raises:
        OpError: one has not 3 dims, or the sizes do not fit.

    Example:
        >>> x = flow.ones(2, 3, 4).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> flow.bmm(x, x, transpose_b=True).shape, flow.bmm(x, x, transpose_b=True).sbp
        (sbpjax.Size([2, 3, 3]), (sbpjax.sbp.split(dim=0),))
    """
    _check_ranks("bmm(x, y)", x=(x, 3), y=(y, 3))
    if x.shape[0] != y.shape[0]:
        fail(
            "shape",
            "bmm(x, y)",
            f"shapes {x.shape} and {y.shape}",
            f"Batch dim not match, please check input! It is {x.shape[0]} and {y.shape[0]}",
            "use matmul, which broadcasts",
        )
    return matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b, alpha=alpha)


def mv(x, y, /):
    """Return the product of a matrix and a vector.

    Returns:
        ``(M,)``. A split of the rows stays; where the columns and the vector are split, the result is a partial sum.

    Raises:
        OpError: the dims are not 2 and 1, or the sizes differ.

    Example:
        >>> flow.mv(flow.tensor([[1.0, 2.0], [3.0, 4.0]]), flow.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    _check_ranks("mv(x, y)", x=(x, 2), y=(y, 1))
    if x.shape[1] != y.shape[0]:
        rule = f"size mismatch, got {x.shape[0]}, {x.shape[0]}x{x.shape[1]}, {y.shape[0]}"
        fail("shape", "mv(x, y)", f"shapes {x.shape} and {y.shape}", rule, "transpose or reshape one of them")
    return matmul(x, y)


def dot(x, y, /):
    """Return the inner product of two vectors.

    Returns:
        A number. If both are split, it is a partial sum.

    Raises:
        OpError: one is no vector, or the sizes differ.

    Example:
        >>> flow.dot(flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0]))
        tensor(11.)
    """
    if x.size != y.size:
        sizes = f"but got {x.size} and {y.size} elements respectively"
        rule = f"inconsistent tensor size, expected tensor to have the same number of elements, {sizes}"
        fail("shape", "dot(x, y)", f"shapes {x.shape} and {y.shape}", rule, "vectors of one size")
    _check_ranks("dot(x, y)", x=(x, 1), y=(y, 1))
    return matmul(x, y)


def outer(x, y, /):
    """Return the products of all pairs of two vectors' elements.

    Returns:
        ``(M, N)``. A split of either stays, if the other is broadcast.

    Raises:
        OpError: one is no vector.

    Example:
        >>> flow.outer(flow.tensor([1, 2]), flow.tensor([3, 4, 5]))
        tensor([[ 3,  4,  5],
                [ 6,  8, 10]])
    """
    _check_ranks("outer(x, y)", x=(x, 1), y=(y, 1))
    return mul(lax.expand_dims(x, (1,)), lax.expand_dims(y, (0,)))


def inner(x, y, /):
    """Return the inner products over the last dims: ``(..., K)`` and ``(___, K)`` give ``(..., ___)``."""
    if x.ndim == 0 or y.ndim == 0:
        return mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        fail(
            "shape",
            "inner(x, y)",
            f"shapes {x.shape} and {y.shape}",
            "the last dims are equal",
            "transpose one of them",
        )
    same_dtype("inner(x, y)", x, y)
    return lax.dot_general(x, y, (((x.ndim - 1,), (y.ndim - 1,)), ((), ())))


def _blend(x, product, beta: complex, alpha: complex):
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, complex) and product.dtype.kind != "c":
            rule = "value cannot be converted to a real type without overflow"
            fix = f"{name}={factor.real}, or complex tensors"
            fail("shape", f"{name}={factor}", f"tensors of {product.dtype}", rule, fix)
    product = product if alpha == 1 else lax.mul(product, cast(alpha, product.dtype))
    if beta == 0:  # a NaN in x does not count then
        return product
    x = x if beta == 1 else lax.mul(x, cast(beta, x.dtype))
    if x.ndim and x.ndim < product.ndim:
        x = lax.expand_dims(x, tuple(range(product.ndim - x.ndim)))
    return lax.add(x, product)


def addmm(x, a, b, /, beta: complex = 1, alpha: complex = 1):
    """Return beta * x + alpha * (a @ b), with x broadcast.

    Args:
        beta: factor of ``x``.
        alpha: factor of the product.

    Returns:
        ``(M, N)``. A split of the rows of ``a`` or the columns of ``b`` stays.

    Raises:
        OpError: the sizes do not fit.

    Example:
        >>> flow.addmm(flow.ones(2), flow.tensor([[1.0, 2.0]]), flow.tensor([[3.0, 4.0], [5.0, 6.0]]), alpha=2)
        tensor([[27., 33.]])
    """
    same_dtype("addmm(x, a, b)", x, a, b)
    return _blend(x, mm(a, b), beta, alpha)


def baddbmm(x, a, b, /, beta: complex = 1, alpha: complex = 1):
    """Return beta * x + alpha * (a @ b) for stacks of matrices, with x broadcast.

    Args:
        beta: factor of ``x``.
        alpha: factor of the product.

    Returns:
        ``(B, M, N)``. A split of the batch, of the rows of ``a`` or the columns of ``b`` stays.

    Raises:
        OpError: the sizes do not fit.

    Example:
        >>> flow.baddbmm(flow.ones(1, 1, 1), flow.tensor([[[1.0, 2.0]]]), flow.tensor([[[3.0], [4.0]]]))
        tensor([[[12.]]])
    """
    same_dtype("baddbmm(x, a, b)", x, a, b)
    return _blend(x, bmm(a, b), beta, alpha)


def addbmm(x, a, b, /, beta: complex = 1, alpha: complex = 1):
    """Return beta * x + alpha * the sum over the stack of a @ b."""
    _check_ranks("addbmm(x, a, b)", a=(a, 3), b=(b, 3))
    same_dtype("addbmm(x, a, b)", x, a, b)
    return _blend(x, lax.dot_general(a, b, (((0, 2), (0, 1)), ((), ()))), beta, alpha)


def addmv(x, a, b, /, beta: complex = 1, alpha: complex = 1):
    """Return beta * x + alpha * (a @ b), a matrix times a vector."""
    same_dtype("addmv(x, a, b)", x, a, b)
    return _blend(x, mv(a, b), beta, alpha)


def addr(x, a, b, /, beta: complex = 1, alpha: complex = 1):
    """Return beta * x + alpha * outer(a, b)."""
    product = outer(a, b)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, float) and factor != int(factor) and product.dtype.kind in "iub":
            rule = f"For integral input tensors, argument {name} must not be a floating point number"
            fail("shape", f"addr(x, a, b, {name}={factor})", f"tensors of {product.dtype}", rule, f"{name}=1")
    if product.dtype == x.dtype == BOOL:  # the product is "and", the sum "or"
        x, product = (v if factor else lax.full(v.shape, False) for v, factor in ((x, beta), (product, alpha)))
        return lax.bitwise_or(broadcast_to(x, product.shape), product)
    return _blend(x, product, beta, alpha)


def linear(x, weight, bias=None, /):
    """Return x Wᵀ + b.

    Args:
        x: `(..., in)`, any sbp.
        weight: `(out, in)`; ``split(0)`` splits the result, ``split(1)`` makes it a partial sum if x is split
            along its last dim too.
        bias: `(out,)`.

    Returns:
        ``(..., out)``. Splits of other dims of ``x`` stay.

    Raises:
        OpError: the last dims differ.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.broadcast)
        >>> w = flow.ones(8, 6, placement=p, sbp=flow.sbp.split(0))
        >>> flow.nn.functional.linear(x, w).shape, flow.nn.functional.linear(x, w).sbp
        (sbpjax.Size([4, 8]), (sbpjax.sbp.split(dim=1),))
    """
    same_dtype("linear(x, weight, bias)", x, weight, bias)
    if x.ndim == 0 or weight.ndim not in (1, 2) or x.shape[-1] != weight.shape[-1]:
        fail(
            "shape",
            "linear(x, weight)",
            f"x {x.shape}, weight {weight.shape}",
            "x is (..., K) and weight (N, K)",
            f"a weight of shape (N, {x.shape[-1] if x.ndim else 1})",
        )
    out = lax.dot_general(x, weight, (((x.ndim - 1,), (weight.ndim - 1,)), ((), ())))
    return out if bias is None else _blend(bias, out, 1, 1)


def bilinear(x, y, weight, bias=None, /):
    """Return x1 A x2 + b.

    Args:
        x: `(..., in1)`.
        y: `(..., in2)`.
        weight: `(out, in1, in2)`.
        bias: `(out,)`.
    """
    same_dtype("bilinear(x, y, weight, bias)", x, y, weight, bias)
    batch = _BATCH[: x.ndim - 1]
    half = contract(x, batch + "i", weight, "nij", batch + "nj")
    out = contract(half, batch + "nj", y, batch + "j", batch + "n")
    return out if bias is None else _blend(bias, out, 1, 1)


def _sum_keepdims(x, dims: tuple[int, ...]):
    """Return x summed over dims that stay, of size 1: the equivalent of a contraction with a broadcast dim."""
    return lax.expand_dims(lax.reduce_sum(x, dims), dims) if dims else x


def tensordot(x, y, /, dims=2):
    """Return the contraction of the last ``dims`` dims of x with the first of y, or of the two given lists of dims.

    A contracted dim of size 1 broadcasts.
    """
    if x.dtype != y.dtype:
        fail("type", "tensordot(x, y)", f"{x.dtype} and {y.dtype}", "both have one dtype", "x.to(y.dtype)")
    if isinstance(dims, int):
        if dims < 0:
            fail("shape", f"tensordot(dims={dims})", f"x {x.shape}, y {y.shape}", "dims >= 0", "dims=1")
        dims = (tuple(range(x.ndim - dims, x.ndim)), tuple(range(dims)))
    left, right = (tuple(d % z.ndim for d in ds) for ds, z in zip(dims, (x, y)))
    pairs = list(zip(left, right))
    for a, b in pairs:
        if x.shape[a] != y.shape[b] and 1 not in (x.shape[a], y.shape[b]):
            sizes = f"first has size {x.shape[a]} in dim {a} and second has size {y.shape[b]} in dim {b}"
            rule = f"contracted dimensions need to match, but {sizes}"
            fail("shape", "tensordot(x, y)", f"x {x.shape}, y {y.shape}", rule, "other dims")
    x = _sum_keepdims(x, tuple(a for a, b in pairs if y.shape[b] == 1 != x.shape[a]))
    y = _sum_keepdims(y, tuple(b for a, b in pairs if x.shape[a] == 1 != y.shape[b]))
    return lax.dot_general(x, y, ((left, right), ((), ())))


def kron(x, y, /):
    """Return the Kronecker product."""
    n = max(x.ndim, y.ndim)
    x, y = (lax.reshape(z, (1,) * (n - z.ndim) + z.shape) for z in (x, y))
    left = lax.expand_dims(x, tuple(range(1, 2 * n, 2)))
    right = lax.expand_dims(y, tuple(range(0, 2 * n, 2)))
    return lax.reshape(mul(left, right), tuple(a * b for a, b in zip(x.shape, y.shape)))
