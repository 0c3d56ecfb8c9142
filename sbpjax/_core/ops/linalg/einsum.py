"""Einsum: parsing, and pairwise contraction from the left by `linalg.contract`.

Worked case: ``einsum("bhqd,bhkd->bhqk", q, k)`` is one ``dot_general`` with batch dims b and h, contracted dim d.
A label that appears twice in one operand takes its diagonal; one that is in no other operand and not in the output is
summed before any product; ``...`` stands for broadcast dims on the left.
"""

from __future__ import annotations

import string

from jax import lax

from ..dims import fail, same_dtype
from .matrix import diagonal
from .products import _order_labels, contract


def einsum(*operands, equation: str):
    """Return the sum of products that the equation describes.

    Args:
        operands: arrays of one dtype, one per comma-separated term.
        equation: e.g. ``"bij,bjk->bik"``; without ``->`` the output has the labels that occur once, in alphabetical
            order.
    """
    terms, out = _parse(equation, operands)
    if set("".join(terms)) - set(out):
        same_dtype(f"einsum({equation!r})", *operands)
    terms = list(terms)
    operands = list(operands)
    for i, labels in enumerate(terms):
        operands[i], terms[i] = _without_repeats(operands[i], labels)
    while len(operands) > 1:
        rest = set(out).union(*terms[2:])
        kept = "".join(dict.fromkeys(c for c in terms[0] + terms[1] if c in rest))
        target = out if len(operands) == 2 and set(kept) == set(out) else kept
        operands[:2] = [contract(operands[0], terms[0], operands[1], terms[1], target)]
        terms[:2] = [target]
    x, labels = operands[0], terms[0]
    alone = tuple(i for i, c in enumerate(labels) if c not in out)
    if alone:
        x, labels = lax.reduce_sum(x, alone), "".join(c for c in labels if c in out)
    return _order_labels(x, labels, out)


def spell_equation(given: tuple) -> tuple[str, tuple]:
    """Return the equation and the operands of ``(x, dims, y, dims, ...)``, where the last dims are of the output."""
    tensors, dims = given[: len(given) // 2 * 2 : 2], given[1::2]

    def term(labels) -> str:
        for label in labels:
            if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < 52):
                rule = "dims are numbers in [0, 52), or ..."
                fail("value", "einsum(x, dims, ...)", repr(label), rule, "einsum(x, [0, 1], [1, 0])")
        return "".join("..." if label is Ellipsis else string.ascii_letters[label] for label in labels)

    out = "->" + term(given[-1]) if len(given) % 2 else ""
    return ",".join(term(d) for d in dims) + out, tensors


def _raise_shape_error(equation: str, operands, rule: str, fix: str):
    fail("shape", f"einsum({equation!r})", "shapes " + ", ".join(str(x.shape) for x in operands), rule, fix)


def _parse(equation: str, operands) -> tuple[list[str], str]:
    """Return the labels of each operand and of the output, with every ``...`` spelled out in digits and marks."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        _raise_shape_error(
            equation,
            operands,
            f"{len(terms)} terms need as many operands, got {len(operands)}",
            "add a term or operand",
        )
    spare = [chr(c) for c in range(0x100, 0x140)]  # labels that no user writes
    widest = 0
    for term, x in zip(terms, operands):
        named = term.replace("...", "", 1)
        if not set(named) <= set(string.ascii_letters):
            _raise_shape_error(
                equation,
                operands,
                f"labels are letters, and ... once per term; got {term!r}",
                "spell the term in letters",
            )
        extra = x.ndim - len(named)
        if extra < 0 or ("..." not in term and extra):
            _raise_shape_error(
                equation, operands, f"the term {term!r} names every dim of shape {x.shape}", "name each dim, or use ..."
            )
        widest = max(widest, extra)
    dots = "".join(spare[:widest])
    spelled = [t.replace("...", dots[widest - (x.ndim - len(t.replace("...", ""))) :]) for t, x in zip(terms, operands)]
    joined = "".join(spelled)
    if arrow:
        out = right.replace("...", dots)
        for c in out:
            if out.count(c) > 1 or c not in joined:
                _raise_shape_error(
                    equation,
                    operands,
                    f"the output label {c!r} occurs once there and in an input",
                    "correct the output",
                )
    else:
        out = dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))
    sizes: dict[str, int] = {}
    for labels, x in zip(spelled, operands):
        for c, size in zip(labels, x.shape):
            if size != 1 and sizes.setdefault(c, size) != size:
                _raise_shape_error(
                    equation, operands, f"label {c!r} has sizes {sizes[c]} and {size}", "make them equal, or 1"
                )
    return spelled, out


def _without_repeats(x, labels: str):
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            x = diagonal(x, offset=0, dim1=first, dim2=second)
            labels = "".join(a for i, a in enumerate(labels) if i not in (first, second)) + c
    return x, labels
