"""Explanations: the tables say what the plan does."""

import jax
import jax.numpy as jnp

from sbpjax._core.inspect.plan_table import Explanation
from sbpjax._core.planner import plan_exactly
from sbpjax._core.programs.normalise import normalise


def explanation(*in_codes):
    program = normalise(jax.make_jaxpr(lambda x, w: jnp.tanh(x @ w))(jnp.ones((8, 64), "f"), jnp.ones((64, 4), "f")))
    return Explanation(plan_exactly(program, (4,), in_codes), "layer")


def test_tables_name_signatures_lines_and_bytes():
    found = explanation((1,), (0,))
    assert [row[:2] for row in found.equations()] == [("dot_general", "S1 | S0 → P"), ("tanh", "S0 → S0")]
    ((what, collective, moved, reader, line),) = found.conversions()
    assert (what, collective, reader) == ("f32[8, 4] P → S0", "reduce_scatter(a0)", "tanh")
    assert int(moved) == found.bytes == 8 * 4 * 4 * 3 // 4
    assert line.split(":")[0].endswith("test_plan_table.py")


def test_text_and_html_show_the_same_rows():
    found = explanation((1,), (0,))
    text, page = str(found), found._repr_html_()
    assert text.splitlines()[0] == "layer on 4 ranks: 96 B per device in 1 boxing"
    for row in (*found.equations(), *found.conversions()):
        assert all(cell in text for cell in row)
        assert all(cell.replace(">", "&gt;") in page for cell in row)


def test_nothing_moved_is_said():
    assert "0 B per device in 0 boxings" in str(explanation((0,), (-1,)))
