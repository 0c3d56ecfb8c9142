"""The cost model: worked figures, and the order of the presets."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.ops.attention.primitive import attention
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from sbpjax._core.ops.grouped_matmul.primitive import grouped_matmul
from sbpjax._core.planner.prices import cost
from sbpjax.errors import SbpError
from sbpjax.sbp.conversion_steps import Step, make_step


def _eqn(fn, *shapes, dtype=jnp.float32):
    return jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(s, dtype) for s in shapes)).eqns[-1]


def test_the_product_of_the_docstring():
    eqn = _eqn(jnp.matmul, (8192, 1024), (1024, 4096))
    assert cost.flops(eqn) == pytest.approx(68.7e9, rel=1e-3)
    assert cost.PRESETS["h100"].equation_us(eqn) == pytest.approx(139, rel=1e-2)
    moved = 2 * 134_217_728 * 7 / 8
    assert cost.PRESETS["h100"].with_latency(0.0).interconnect_us(moved) == pytest.approx(522, rel=1e-2)
    assert cost.PRESETS["h100"].interconnect_us(moved) == pytest.approx(522 + 10, rel=1e-2)


def test_half_precision_is_faster():
    model = cost.PRESETS["h100"]
    f32, bf16 = (_eqn(jnp.matmul, (1024, 1024), (1024, 1024), dtype=d) for d in (jnp.float32, jnp.bfloat16))
    assert model.equation_us(bf16) == pytest.approx(model.equation_us(f32) / 2, rel=1e-6)


@pytest.mark.parametrize("name", ["v5p", "h100"])
def test_casts_read_and_write(name):
    cast = _eqn(lambda x: x.astype(jnp.bfloat16), (1024, 1024))
    assert cast.primitive.name == "convert_element_type"
    model = cost.PRESETS[name]
    assert cost.work_us(model, cast) == pytest.approx(model.memory_us(6 * 1024 * 1024))


def test_small_work_is_bound_by_memory():
    model = cost.PRESETS["a100"]
    eqn = _eqn(lambda x: x.sum(0), (1 << 20, 8))
    assert model.equation_us(eqn) == pytest.approx(((1 << 23) + 8) * 4 / 2.039e12 * 1e6)


def test_convolutions_count_their_kernel():
    eqn = _eqn(lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"), (2, 3, 16, 16), (8, 3, 5, 5))
    assert cost.flops(eqn) == 2 * (2 * 8 * 16 * 16) * (3 * 5 * 5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_priced_by_a_count_by_hand(causal):
    # Compilers count a kernel as nothing: what it computes and moves is what is written here.
    model, heads, width = cost.PRESETS["h100"].with_latency(0.0), 4, 64

    def eqns(length):
        q = jax.ShapeDtypeStruct((heads, 1, length, width), jnp.bfloat16)
        k = jax.ShapeDtypeStruct((heads, length, width), jnp.bfloat16)
        run = lambda q, k, v: attention(q, k, v, how=Scores(0.125, CAUSAL if causal else EVERY_KEY))  # noqa: E731
        both = jax.make_jaxpr(lambda q, k, v: jax.vjp(run, q, k, v)[1](q))(q, k, k).eqns
        return [next(e for e in both if e.primitive.name == name) for name in ("attention", "attention_grad")]

    forward, backward = eqns(4096)
    product = 2 * heads * 4096 * 4096 * width * (0.5 if causal else 1)  # scores, or their product with values
    assert model.equation_us(forward) == pytest.approx(2 * product / 989e12 * 1e6)
    assert model.equation_us(backward) == pytest.approx(5 * product / 989e12 * 1e6)
    forward, backward = eqns(16)
    one, lse = heads * 16 * width * 2, heads * 16 * 4
    assert model.equation_us(forward) == pytest.approx((4 * one + lse) / 3.35e12 * 1e6)  # q, k, v; out and its lse
    assert model.equation_us(backward) == pytest.approx((8 * one + lse) / 3.35e12 * 1e6)  # those, ct; dq, dk, dv


def test_grouped_products_are_priced_by_a_count_by_hand():
    model, groups, width, out = cost.PRESETS["h100"].with_latency(0.0), 8, 2048, 4096

    def eqns(rows):
        x, w = (jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((rows, width), (groups, width, out)))
        run = lambda x, w: grouped_matmul(x, w, jnp.full(groups, rows // groups))  # noqa: E731
        ct = jax.ShapeDtypeStruct((rows, out), jnp.bfloat16)
        found = jax.make_jaxpr(lambda x, w, ct: jax.vjp(run, x, w)[1](ct))(x, w, ct).eqns
        return [e for e in found if e.primitive.name in ("grouped_matmul", "grouped_outer")]

    for eqn in eqns(8192):  # the product, and its two gradients: each row meets one matrix, not eight
        assert model.equation_us(eqn) == pytest.approx(2 * 8192 * width * out / 989e12 * 1e6)
    for eqn in eqns(16):  # all matrices are read, or written
        moved = 2 * (16 * width + groups * width * out + 16 * out) + 2 * 4 * groups
        assert model.equation_us(eqn) == pytest.approx(moved / 3.35e12 * 1e6, rel=1e-3)


def test_loops_take_their_body_times_their_length():
    model = cost.DEFAULT

    def loop(length):
        return _eqn(lambda x: jax.lax.scan(lambda c, _: (c @ c, None), x, None, length=length)[0], (256, 256))

    assert model.equation_us(loop(10)) == pytest.approx(10 * model.equation_us(loop(1)))
    assert model.equation_us(loop(1)) == pytest.approx(model.equation_us(_eqn(jnp.matmul, (256, 256), (256, 256))))


def test_a_conversion_is_its_collectives_and_its_local_steps():
    model = cost.CostModel("flat", 1e12, 1e12, 1e9, 1e9, 1e9, alpha_us=3.0)
    gather = Step("all_gather", 0, 0, -1, bytes=1000, price=1000)
    cut = Step("slice", 0, -1, 0, bytes=0, price=0)
    assert model.steps_us((gather, cut), 500) == pytest.approx(3.0 + 1.0 + 0.5)
    assert model.steps_us((), 500) == 0


def test_where_memory_is_read_in_tiles_collectives_pay_for_what_they_touch():
    whole = cost.CostModel("torus", 1e12, 1e12, 1e9, 1e9, 1e8, 0.0, tiles=True)
    written = replace(whole, links=(cost.Link(0.0, 1e8, ("psum_scatter", "all_gather")),))

    def us(model, source, target):
        step = make_step((8192,), 1, (8,), (source,), 0, target)  # whole tiles
        return model.steps_us((step,), 0), model.collectives_us((step,))

    moved, touched = 71.68, 8.192  # µs of seven eighths on the interconnect, and of the whole in memory
    assert us(whole, 0, -1) == pytest.approx((moved + 1.125 * touched, moved))  # the own part is read, all is written
    assert us(whole, -2, 0) == pytest.approx((moved + 1.125 * touched, moved))
    assert us(whole, -2, -1) == pytest.approx((2 * moved + 2 * touched, 2 * moved))
    assert us(written, -2, 0) == us(written, -2, -1) == us(whole, -2, -1)
    # zeros, and their sum with the part put into them
    assert us(written, 0, -1) == pytest.approx((2 * moved + 3.125 * touched, 2 * moved))


@pytest.mark.parametrize(
    ("shape", "source", "target", "passes"),
    [
        ((1024, 128), -1, 0, 0.125),  # of a slice its own part
        ((8, 1024, 128), -2, 1, 1.125),
        ((64, 64, 1024), 2, 1, 7 / 64 * 2),
        ((1024, 64, 1), -2, 0, 2 * (1.125 + 0)),  # 64 numbers fill half of the lanes
    ],
)
def test_what_a_step_touches_of_the_whole(shape, source, target, passes):
    model = cost.CostModel("tiles", 1e12, 1e12, 1e9, 1e9, 1e30, 0.0, tiles=True)
    step = make_step(shape, 1, (8,), (source,), 0, target)
    whole = math.prod(shape)
    assert model.steps_us((step,), whole / 8) == pytest.approx(model.memory_us(passes * whole))


def test_latency_is_in_every_preset_and_a_choice():
    assert cost.DEFAULT.alpha_us < 0.1 and not cost.DEFAULT.combines
    assert cost.PRESETS["h100"].alpha_us == 10.0
    assert cost.PRESETS["h100"].with_latency(2.5).alpha_us == 2.5


@pytest.mark.parametrize("name", ["cpu", "a100", "h100", "h200", "v4", "v5e", "v5p", "v6e"])
def test_presets_are_consistent(name):
    model = cost.preset(name)
    assert model.name == name
    assert model.flops_bf16 >= model.flops_f32 > model.memory_bytes_per_s > model.interconnect_bytes_per_s > 0
    # µs of a collective: a torus of chips, NCCL on NVLink, threads of one process
    low, high = {"v": (1, 3), "a": (10, 20), "h": (10, 20), "c": (10, 1000)}[name[0]]
    assert low <= model.alpha_us <= high
    assert "psum" in model.combines


def test_a_step_that_is_combined_has_its_share_of_the_latency():
    model = replace(cost.PRESETS["h100"], combined_bytes=1000)
    small, large = (Step("psum", 0, -2, -1, bytes=n, price=n) for n in (100, 1000))
    alone = Step("all_to_all", 0, 0, 1, bytes=100, price=100)
    assert [model.is_combined(s) for s in (small, large, alone)] == [True, False, False]
    assert [model.share_us(s) for s in (small, large, alone)] == pytest.approx([1.0, 10.0, 10.0])


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(SbpError, match=r"'b200'[\s\S]*a100[\s\S]*fix"):
        cost.preset("b200")


def test_the_title_of_prices_shows_another_latency_than_the_presets():
    assert cost.PRESETS["h100"].title == "h100"
    assert cost.DEFAULT.title == "h100 with 0.005 µs latency"
    assert cost.PRESETS["v5p"].with_latency(7).title == "v5p with 7 µs latency"
    assert replace(cost.DEFAULT, name="measured cpu × 8").title == "measured cpu × 8"
