"""Loops that write stacks in place: same values, no second stack."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax._core.compiler.in_place import aliasable_scan_pairs, match_donations, write_scans_in_place
from sbpjax._core.programs.normalise import normalise, run_program
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement

TURNS, WIDTH = 5, 64
STACK_BYTES = TURNS * WIDTH * WIDTH * 4
SHAPE = (TURNS, WIDTH, WIDTH)


def _update(weights, moments, gradients, reverse=False):
    """Momentum per layer; the carried number is a sum over the turns before."""

    def turn(total, own):
        w, m, g = own
        m = 0.9 * m + g + 0.01 * total
        return total + jnp.sum(m) * 1e-3, (w - 0.1 * m, m, jnp.max(m))

    total, (w, m, most) = jax.lax.scan(turn, jnp.float32(0), (weights, moments, gradients), reverse=reverse)
    return w, m, total, most


def _values():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(3)]


def _program(fn, count=3):
    return normalise(jax.make_jaxpr(fn)(*[jax.ShapeDtypeStruct(SHAPE, np.float32)] * count))


def _compiled(program, donated):
    call = jax.jit(lambda *arrays: run_program(program, arrays), donate_argnums=donated)
    return call.lower(*[jax.ShapeDtypeStruct(SHAPE, np.float32)] * len(program.invars)).compile()


@pytest.mark.parametrize("reverse", [False, True])
def test_same_values_and_no_second_stack(reverse):
    program = _program(lambda *a: _update(*a, reverse=reverse))
    changed = write_scans_in_place(program, {0: 0, 1: 1})
    before, after = _compiled(program, (0, 1)), _compiled(changed, (0, 1))
    want = before(*map(jnp.array, _values()))
    for a, b in zip(after(*map(jnp.array, _values())), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert before.memory_analysis().temp_size_in_bytes > 2 * STACK_BYTES
    assert after.memory_analysis().temp_size_in_bytes < STACK_BYTES
    assert " copy(" not in "".join(line for line in after.as_text().splitlines() if f"f32[{TURNS},{WIDTH}" in line)


def test_partners_are_found_as_jax_finds_them():
    assert match_donations("aabca", "acba", [0, 1, 3]) == {0: 0, 1: 3, 3: 1}
    assert match_donations("ab", "ba", []) == {}


def test_only_what_the_loop_reads_last_is_written_over():
    whole = _program(_update)
    assert aliasable_scan_pairs(whole, {0: 0, 1: 1}) == {0: [(1, 1), (2, 2)]}
    assert aliasable_scan_pairs(whole, {0: 1, 1: 0}) == {0: [(2, 1), (1, 2)]}  # each turn reads before it is written

    def read_later(w, m, g):
        new, moment, _, _ = _update(w, m, g)
        return new, moment, w.sum()

    assert list(aliasable_scan_pairs(_program(read_later), {0: 0, 1: 1}).values()) == [[(2, 2)]]
    returned = _program(lambda w, m, g: (*_update(w, m, g)[:2], w))
    assert list(aliasable_scan_pairs(returned, {0: 0, 1: 1}).values()) == [[(2, 2)]]
    shared = _program(lambda w, g: _update(w, w, g)[:2], 2)
    assert aliasable_scan_pairs(shared, {0: 0}) == {}
    moved = _program(lambda w, m, g: (_update(w[::-1], m, g)[0], m + 1))
    assert aliasable_scan_pairs(moved, {0: 0, 1: 1}) == {}


def test_exchanged_stacks_have_the_values_of_separate_ones():
    program = _program(_update)
    changed = write_scans_in_place(program, {0: 1, 1: 0})
    assert changed is not program
    for a, b in zip(run_program(changed, _values()), run_program(program, _values()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_on_several_ranks_with_layouts_of_their_own():
    where = placement("cpu", range(4))
    lies = [Layout(where, name, SHAPE, "float32") for name in ("S1", "S1", "B")]
    made = compile_program(lambda *a: _update(*a)[:2], where, lies, [0, 1], donate=(0, 1))
    arrays = [from_logical(x, where, layout.sbp)[0] for x, layout in zip(_values(), lies, strict=True)]
    compiled = made.lower().compile()
    cut = STACK_BYTES // 4  # each rank's part of the gradients, which come whole
    assert cut <= compiled.memory_analysis().temp_size_in_bytes < 2 * cut
    results = made.call(*arrays)
    for x, layout, want in zip(results, made.out_layouts, _update(*_values())[:2], strict=True):
        np.testing.assert_allclose(to_logical(x, layout), want, rtol=1e-6, atol=1e-6)
