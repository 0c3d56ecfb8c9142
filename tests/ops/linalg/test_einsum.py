"""Einsum against torch: contraction, batch, outer, diagonal, ellipsis, broadcast, implicit output."""

import jax
import numpy as np
import pytest
import torch

from sbpjax._core.ops.linalg.einsum import einsum
from sbpjax.errors import OpError
from tests.ops.checker import F, I, case, run

SIZES = dict(zip("abcdhijkqn", (2, 3, 4, 5, 2, 3, 4, 5, 6, 7)))
PLAIN = [
    "ij,jk->ik",
    "ij,kj->ik",
    "bij,bjk->bik",
    "bhqd,bhkd->bhqk",
    "ij->j",
    "ij->ji",
    "ij->",
    "i,i->",
    "i,j->ij",
    "ij,ij->ij",
    "ij,ij->",
]
PLAIN += [
    "ij,ji->ji",
    "bij,bkj->bik",
    "bhij,bhjk->bihk",
    "ij,jk,kd->id",
    "i,j,k->kji",
    "ij,jk",
    "ba",
    "ij,kd->",
    "abc,cd,bd->a",
    "bi,ij,bj->b",
]
PLAIN += ["ab,cb,db->acd", "bn, anm ,bm -> ba".replace("m", "k")]


def ref(*operands, equation):
    return torch.einsum(equation, *operands)


def inputs(equation):
    terms = equation.replace(" ", "").split("->")[0].split(",")
    return [F(*(SIZES[c] for c in t), seed=i) for i, t in enumerate(terms)]


CASES = [case(einsum, ref, *inputs(e), equation=e) for e in PLAIN]
CASES += [case(einsum, ref, F(3, 3), equation=e) for e in ("ii->i", "ii->", "ii")]
CASES += [case(einsum, ref, F(3, 4, 3), F(3, 4, seed=1), equation=e) for e in ("iji,ij->ij", "iji,ij->i", "iji,kj->ik")]
CASES += [
    case(einsum, ref, F(5, 2, 3, 4), F(5, 2, 4, 6), equation=e)
    for e in ("...ij,...jk->...ik", "...ij,...jk", "b...ij,b...jk->...bik")
]
CASES += [
    case(einsum, ref, F(2, 3, 4), F(5, 1, 4, 6), equation="...ij,...jk->...ik"),
    case(einsum, ref, F(2, 1, 4), F(1, 3, 4), equation="abc,abc->abc"),
]
CASES += [
    case(einsum, ref, F(2, 3, 4), equation="...j->..."),
    case(einsum, ref, F(2, 1), F(3, 4), equation="ij,jk->ik"),
]
CASES += [
    case(einsum, ref, I(2, 3), I(3, 4), equation="ij,jk->ik"),
    case(einsum, ref, F(2, 3, dtype=np.float64), F(3, dtype=np.float64), equation="ij,j->i"),
]

test_against_torch = run(CASES)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bhqd,bhkd->bhqk", "bij,bkj->bik"])
def test_one_contraction_and_nothing_else(equation):
    names = [e.primitive.name for e in jax.make_jaxpr(lambda *x: einsum(*x, equation=equation))(*inputs(equation)).eqns]
    assert names == ["dot_general"]


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("ij,jk->ik", [(2, 3), (4, 5)]),
        ("i->i", [(2, 3)]),
        ("i1->i", [(2, 3)]),
    ],
)
def test_bad_equations(equation, shapes):
    with pytest.raises(OpError, match="einsum"):
        einsum(*(F(*s) for s in shapes), equation=equation)
