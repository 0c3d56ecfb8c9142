"""The sbp algebra: forms, codes, reprs, and errors that say what to do."""

import pickle

import pytest

from sbpjax.errors import SbpError, SbpTypeError
from sbpjax.sbp import algebra
from sbpjax.sbp.algebra import B, P, broadcast, nd_name, parse, partial_sum, sbp, split, to_sbp


def four_parts(error) -> list[str]:
    """Return what was asked, what was seen, the rule and the fix of an error's text."""
    lines = str(error.value).splitlines()
    assert [x.strip().split(":")[0] for x in lines[1:]] == ["seen", "rule", "fix"]
    assert "test_algebra.py:" in lines[0]
    return lines


def test_codes():
    assert (split(0).code, split(3).code, broadcast.code, partial_sum.code) == (0, 3, B, P)
    assert split(1).is_split and not broadcast.is_split and not partial_sum.is_split


def test_with_and_without_a_call():
    assert broadcast() is broadcast and partial_sum() is partial_sum
    assert split(1)() == split(1)


def test_equality_hash_and_pickle():
    assert split(0) == split(0) != split(1)
    assert split(0) != 0 and broadcast != "B"
    assert len({split(0), split(0), broadcast, partial_sum, split(1)}) == 4
    for entry in (split(2), broadcast, partial_sum):
        assert pickle.loads(pickle.dumps(entry)) == entry


def test_repr():
    assert repr(split(1)) == "sbpjax.sbp.split(dim=1)"
    assert repr((broadcast, partial_sum)) == "(sbpjax.sbp.broadcast, sbpjax.sbp.partial_sum)"
    assert isinstance(split(0), sbp) and isinstance(split(63), sbp)


@pytest.mark.parametrize(
    "value, codes",
    [
        ("S0,B", (0, B)),
        (" S1 , P ", (1, P)),
        ("(S0,S0)", (0, 0)),
        ([split(0), broadcast], (0, B)),
        ((partial_sum, split(1)), (P, 1)),
        (["S1", "B"], (1, B)),
    ],
)
def test_parse(value, codes):
    assert parse(value, (2, 2), 2) == codes


def test_parse_one_entry_on_one_axis():
    assert parse(split(0), (4,), 1) == (0,)
    assert parse("B", (4,), 0) == (B,)


@pytest.mark.parametrize("dim", [-1, -2, -3, -64, -65, -(2**70)])
@pytest.mark.parametrize("form", [split, lambda dim: parse(f"S{dim},B", (2, 2), 2)], ids=["split", "text"])
def test_negative_dims_are_refused(form, dim):
    """As in OneFlow, in its words: an sbp is made without a tensor to count from."""
    with pytest.raises(RuntimeError, match=f"Split axis must not be negative, but got {dim}!") as error:
        form(dim)
    assert f"split(x.ndim - {-dim})" in four_parts(error)[3]


@pytest.mark.parametrize("dim", [64, 65, 1000, 2**70])
def test_dims_that_no_tensor_has_are_refused(dim):
    assert split(5).code == 5 and split(63).code == 63
    words = rf"less than the supported maximum axis \(64\), but got {dim}!"
    with pytest.raises(RuntimeError, match=words) as error:
        split(dim)
    four_parts(error)


def test_names_round_trip():
    for codes in ((0, B), (P, 2), (1, 1)):
        assert parse(nd_name(codes), (2, 2), 3) == codes
        assert parse(to_sbp(codes), (2, 2), 3) == codes
    assert nd_name((0, B, P)) == "S0,B,P"
    assert algebra.from_code(3) == split(3)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_dim_the_tensor_lacks(dim):
    with pytest.raises(SbpError) as error:
        parse(split(dim), (4,), 2)
    lines = four_parts(error)
    assert f"split({dim})" in lines[1] and "0 <= d < 2" in lines[2]


def test_a_scalar_has_no_dim():
    with pytest.raises(SbpError) as error:
        parse(split(0), (4,), 0)
    assert "0-d tensor" in four_parts(error)[2]


@pytest.mark.parametrize("value", [split(0), "S0", [split(0)], "S0,B,B"])
def test_one_entry_per_placement_dimension(value):
    with pytest.raises(SbpError) as error:
        parse(value, (2, 4), 2)
    lines = four_parts(error)
    assert "hierarchy (2, 4)" in lines[1] and "2" in lines[2] and "2 entries" in lines[3]


@pytest.mark.parametrize("text", ["X", "S", "Sx", "", "S0;B", "s0", "split0"])
def test_unknown_text(text):
    with pytest.raises(SbpError) as error:
        parse(text, (4,), 2)
    four_parts(error)


@pytest.mark.parametrize("value", [3, None, 1.5, [0], object()])
def test_no_sbp(value):
    with pytest.raises(SbpTypeError) as error:
        parse(value, (4,), 2)
    assert isinstance(error.value, TypeError)
    four_parts(error)


@pytest.mark.parametrize("dim", ["0", 1.0, None, True])
def test_split_takes_an_int(dim):
    with pytest.raises(SbpTypeError) as error:
        split(dim)
    four_parts(error)


def test_split_of_an_impossible_dim():
    for dim in (64, -65, 10**9):
        with pytest.raises(SbpError) as error:
            split(dim)
        four_parts(error)
    assert isinstance(error.value, (ValueError, RuntimeError))


@pytest.mark.parametrize(
    ("text", "hierarchy", "fix"),
    [
        ("X", (4,), 'for 1 placement dim: "S0"'),
        ("X", (2, 2), 'for 2 placement dims: "S0,B"'),
        ("split(1)", (4,), "write \"S1\" for 'split1'"),
        ("b", (4,), "write \"B\" for 'b'"),
        ("S0,B", (4,), 'give 1 entry: "S0"'),
        ("P", (2, 2), 'give 2 entries: "P,B"'),
    ],
)
def test_fix_of_a_wrong_text_fits_the_placement(text, hierarchy, fix):
    with pytest.raises(SbpError) as error:
        parse(text, hierarchy, 2)
    assert str(error.value).endswith(f"fix:  {fix}")
