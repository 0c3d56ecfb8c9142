"""Which arguments of a function of two tensors may be numbers: those that PyTorch takes, and no others."""

import functools

import pytest
import torch

import sbpjax as flow
from sbpjax._core.functions import rows  # noqa: F401
from sbpjax._core.functions.table import table
from sbpjax._core.functions.table.derive import Form

# OneFlow has forms of these with a number, which PyTorch has not.
OF_ONEFLOW = {"logical_and", "logical_or", "logical_xor"}


def _found(package, path):
    return functools.reduce(lambda found, part: getattr(found, part, None), path.split("."), package)


def _pairs():
    for row in table.ROWS:
        if row.written or row.call or row.path.startswith(("Tensor.", "_C.")):
            continue
        form = Form(row, row.resolve())
        given = [p.name for p in form.parameters if p.default is p.empty]
        if given == form.tensors and len(given) == 2 and not form.takes_list and _found(torch, row.path):
            yield row.path


def _refusal(function, *args):
    try:
        function(*args)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("path", list(_pairs()))
def test_a_number_is_taken_where_pytorch_takes_it(path):
    mine, theirs = _found(flow, path), _found(torch, path)
    x, y = flow.tensor([1, 2, 3]), torch.tensor([1, 2, 3])
    for args, peers in (((x, 2), (y, 2)), ((2, x), (2, y)), ((2, 3), (2, 3))):
        wanted = _refusal(theirs, *peers)
        if isinstance(wanted, NotImplementedError) or (path in OF_ONEFLOW and args[0] is x):
            continue  # of the dtype
        got = _refusal(mine, *args)
        if isinstance(wanted, (TypeError, AttributeError)):
            assert isinstance(got, TypeError), f"{path}{args}: {got!r}"
        elif wanted is None:
            assert got is None, f"{path}{args}: {got!r}"


def test_the_error_names_the_argument_and_mends_it():
    with pytest.raises(flow.errors.OpTypeError) as caught:
        flow.maximum(flow.ones(2), 2)
    assert "argument 'other' (position 2) must be Tensor, not int" in str(caught.value)
    assert "fix:  other=sbpjax.tensor(2)" in str(caught.value)


@pytest.mark.parametrize("name", ["__radd__", "__rmul__", "__rand__", "__ror__", "__rxor__"])
def test_an_unbound_operator_of_a_number(name):
    with pytest.raises(TypeError, match="rule: "):
        getattr(flow.Tensor, name)(2, flow.tensor([1, 2]))
