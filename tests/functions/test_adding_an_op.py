"""The three blocks of `docs/how_to/adding_an_op.md` are all that an op needs: they are run here, and used."""

import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import sbpjax
from sbpjax._core.functions.rows import activations
from sbpjax._core.functions.table import table
from sbpjax._core.ops.layers import activation
from sbpjax.nn.layers.activation import layer_of
from tests.op_specs import pointwise
from tests.op_specs.engine import SPECS
from tests.op_specs.engine.check import check

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "adding_an_op.md").read_text()
PURE, ROW, SPEC = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
NAMES = ["squareplus", "nn.functional.squareplus"]


@pytest.fixture
def row():
    """Add the op, and take it away again."""
    rows, shown = len(table.ROWS), {namespace: dict(names) for namespace, names in table._PUBLIC_ROWS.items()}
    exec(PURE, vars(activation))
    exec(ROW, vars(activations))
    exec(SPEC, dict(vars(pointwise)))
    yield table.ROWS[-1]
    del activation.squareplus, table.ROWS[rows:], sbpjax.Tensor.squareplus, sbpjax.Tensor.squareplus_
    vars(sbpjax).pop("squareplus", None), vars(sbpjax.nn.functional).pop("squareplus", None)
    for name in NAMES:
        del SPECS[name]
    for namespace, names in shown.items():
        table._PUBLIC_ROWS[namespace].clear()
        table._PUBLIC_ROWS[namespace].update(names)


def test_all_forms_are_there(row):
    values = np.array([-2.0, 0.0, 1.5], np.float32)
    want = ((values + np.sqrt(values**2 + 4)) / 2).astype(np.float32)
    x, out = sbpjax.tensor(values), sbpjax.zeros(3)
    F = sbpjax.nn.functional
    layer = layer_of(row)()
    for found in (
        sbpjax.squareplus(x), sbpjax.squareplus(input=x, b=4), x.squareplus(), x.clone().squareplus_(), F.squareplus(x),
        F.squareplus(x.clone(), inplace=True), sbpjax.squareplus(x, out=out), out, layer(x),
    ):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)
    assert repr(layer) == "Squareplus(b=4.0)" and type(layer).__doc__.startswith("(x + sqrt")
    assert "squareplus" in dir(sbpjax) and "squareplus" in dir(F)


def test_its_form_and_text_are_shown(row):
    text = "(input: 'Tensor', b: 'float' = 4.0, *, out: 'Tensor | None' = None) -> 'Tensor'"
    assert str(inspect.signature(sbpjax.squareplus)) == text
    examples = doctest.DocTestFinder().find(sbpjax.squareplus, "squareplus", globs={"sbpjax": sbpjax})
    assert doctest.DocTestRunner().run(examples[0]) == (0, 1)


def test_errors_come_in_the_usual_words(row):
    x = sbpjax.ones(2)
    for wrong in (lambda: sbpjax.squareplus(x, c=1), lambda: sbpjax.squareplus(x, "1"), lambda: x.int().squareplus()):
        with pytest.raises(TypeError, match=r"squareplus(?s:.*)seen:(?s:.*)rule:(?s:.*)fix:"):
            wrong()


@pytest.mark.parametrize("name", NAMES)
def test_its_spec_holds(row, name):
    forms = ("forward", "double", "layouts", "traced")
    assert check(name, cases=2, forms=forms).ran >= 6
