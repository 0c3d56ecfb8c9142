"""The second lowering gives the values of the first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax.errors import MixedTensorError, SbpError
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement

MESHES = {"4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]]}


def _run(program, values):
    arrays = [from_logical(v, x.placement, x.sbp)[0] for v, x in zip(values, program.in_layouts)]
    return [np.asarray(to_logical(y, x)) for y, x in zip(program.call(*arrays), program.out_layouts)]


def _step(x, w):
    y = jax.nn.softmax(x @ w, axis=-1)
    return y, y.sum(0), jnp.flip(x, 1)


@pytest.mark.parametrize("lowering", ["spmd", "gspmd"])
@pytest.mark.parametrize("rows", [8, 7, 3])
@pytest.mark.parametrize(
    "mesh, sbps, outs",
    [
        ("4", ("S0", "B"), ("S0", "P", "B")),
        ("4", ("P", "S1"), ("B", "S0", "P")),
        ("4", ("S1", "S0"), ("S1", "B", "S0")),
        ("2x2", ("S0,S0", "B,B"), ("S0,S0", "P,P", "S0,S1")),
        ("2x2", ("S0,P", "P,S1"), ("P,S0", "B,P", "S1,S0")),
        ("2x2", ("B,S1", "S1,S0"), (None, None, None)),
    ],
)
def test_values_do_not_depend_on_the_lowering(mesh, sbps, outs, rows, lowering):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s).astype(np.float32) for s in ((rows, 5), (5, 6))]
    p = placement("cpu", MESHES[mesh])
    layouts = [Layout(p, s, v.shape, v.dtype) for s, v in zip(sbps, values)]
    program = compile_program(_step, p, layouts, outs, lowering=lowering)
    for y, want in zip(_run(program, values), _step(*values)):
        np.testing.assert_allclose(y, want, rtol=2e-6, atol=2e-6)
    for layout, pin in zip(program.out_layouts, outs):
        assert pin is None or layout is layout.with_codes(Layout(p, pin, layout.shape, layout.dtype).codes)


def test_donated_inputs_are_taken():
    p = placement("cpu", MESHES["4"])
    layout = Layout(p, "S0", (8, 4), np.float32)
    program = compile_program(lambda x: x + 1, p, [layout], [0], donate=(0,))
    x, _ = from_logical(np.zeros((8, 4), np.float32), p, "S0")
    (y,) = program.call(x)
    assert x.is_deleted() and float(y.sum()) == 32


def test_bad_requests_say_what_fits():
    p, q = placement("cpu", MESHES["4"]), placement("cpu", MESHES["2x2"])
    x = Layout(p, "S0", (8, 4), np.float32)
    with pytest.raises(SbpError, match="one of \\['gspmd', 'spmd'\\]"):
        compile_program(lambda x: x, p, [x], lowering="auto")
    with pytest.raises(MixedTensorError, match="every input of the program is on"):
        compile_program(lambda x: x, q, [x])
    with pytest.raises(SbpError, match="2 pins for 1 outputs"):
        compile_program(lambda x: x, p, [x], ["B", "B"])
    with pytest.raises(SbpError, match="a pin to input 3"):
        compile_program(lambda x: x, p, [x], [3])
    with pytest.raises(SbpError, match="split\\(2\\)"):
        compile_program(lambda x: x, p, [x], ["S2"])
