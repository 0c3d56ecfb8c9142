"""Every row of the table names what is there, in a form that fits, and says nothing twice."""

import collections
import inspect

import pytest

import sbpjax
from sbpjax._core.functions.table import table
from sbpjax._core.tensor.dispatch.op import SAVES, op_of

SHOWN = [(namespace, name) for namespace, names in table._PUBLIC_ROWS.items() for name in names]


@pytest.mark.parametrize("namespace", sorted(table._PUBLIC_ROWS))
def test_every_name_can_be_made(namespace):
    for name in table.names(namespace):
        function = table.find_function(namespace, name)
        assert callable(function) and inspect.signature(function).parameters is not None
        assert function.__doc__ and function.has_argument_errors, f"{namespace}.{name}"


def test_no_name_is_given_twice():
    given = collections.Counter()
    for row in table.ROWS:
        for name in (row.name, *row.also.split()):
            home = name if "." in name else f"{row.namespace}.{name}"
            if row.shows & table.FN:
                given[home] += 1
    assert [name for name, times in given.items() if times > 1] == []


def test_an_alias_is_the_same_function():
    assert sbpjax.clip is sbpjax.clamp and sbpjax.Tensor.clip_ is sbpjax.Tensor.clamp_
    assert sbpjax.special.expit is sbpjax.sigmoid and sbpjax.Tensor.vdot is sbpjax.vdot


def test_a_method_is_made_when_it_is_asked_for():
    table._add_public_name("Tensor", "vdot", *table._PUBLIC_ROWS["Tensor"]["vdot"])
    assert isinstance(vars(sbpjax.Tensor)["vdot"], table.LazyMethod)
    assert sbpjax.ones(2).vdot(sbpjax.ones(2)).item() == 2
    assert vars(sbpjax.Tensor)["vdot"] is sbpjax.vdot


def test_what_backward_keeps_was_said_before_the_op_was_made():
    for row in table.ROWS:
        if not (row.written or row.call) and row.resolve().__name__ in SAVES and not needed(row):
            assert op_of(row.resolve()).check == SAVES[row.resolve().__name__], row.form


def needed(row):
    """Return whether the op of a row has attributes that must be given."""
    parameters = inspect.signature(row.resolve()).parameters.values()
    return [p for p in parameters if p.kind is not p.POSITIONAL_ONLY and p.default is p.empty]


def test_functions_of_sbpjax_itself_are_ops():
    """A configuration may call them: none of them runs code or opens files."""
    ops = set(table.names(""))
    for name in dir(sbpjax):
        value = getattr(sbpjax, name)
        if inspect.isfunction(value) and value.__module__ == "sbpjax":
            assert value.__qualname__ in ops or name in ops, name
