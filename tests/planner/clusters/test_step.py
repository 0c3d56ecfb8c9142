"""Step time: costs by hand, what each option changes, and the published rows."""

import dataclasses
import statistics

import pytest

from benchmarks import published
from sbpjax.plan import Layout, Step, Transformer, machine, peak

MODEL = Transformer(layers=8, width=1024, heads=8, kv_heads=8, hidden=4096, vocab=32000)
BLOCK = 4 * 1024 * 1024 + 3 * 1024 * 4096


def step(layout, where="h100:8", sequences=64, model=MODEL, length=2048):
    return Step(model, layout, machine(where), length, sequences)


def cost(found, name):
    return sum(c.seconds for c in found.costs() if c.name.startswith(name))


def test_products_take_their_flops_at_the_peak_that_is_reached():
    found = step(Layout(data=8, micro_batch=8))
    tokens = 8 * 2048
    assert cost(found, "matmuls") - cost(found, "matmuls of the vocabulary") == pytest.approx(
        6 * tokens * 8 * BLOCK / (989e12 * 0.5)
    )
    again = step(Layout(data=8, micro_batch=8, recompute="full"))
    ratio = (again.product_work - 3.0) * BLOCK
    assert ratio == pytest.approx(4 * 1024 * 1024 + 2 * 1024 * 4096)  # all but the block's last product


def test_costs_add_up_to_the_time_and_mfu_counts_the_model():
    found = step(Layout(fsdp=2, tensor=2, pipeline=2, micro_batch=2, recompute="full"))
    assert found.seconds == pytest.approx(sum(c.seconds for c in found.costs()))
    flops = 64 * 2048 * MODEL.flops(2048)
    assert found.mfu == pytest.approx(flops / (8 * 989e12 * found.seconds))


def test_float8_takes_products_alone():
    slow, fast = (step(Layout(data=8, micro_batch=8, precision=p)) for p in ("bfloat16", "float8"))
    vocab = cost(slow, "matmuls of the vocabulary")
    assert cost(fast, "matmuls") - vocab == pytest.approx((cost(slow, "matmuls") - vocab) * 989 * 0.5 / (1979 * 0.44))
    assert cost(fast, "attention") == cost(slow, "attention")
    assert cost(fast, "pointwise") > cost(slow, "pointwise")  # casts, and the largest magnitudes


def test_a_gather_of_a_tensor_axis_moves_activations():
    found = step(Layout(data=2, tensor=4, micro_batch=4, overlaps=False))
    (entry,) = [c for c in found.costs() if c.name.startswith("tensor")]
    once = 4 * 2048 * 1024 * 2 * 3 / 4
    assert entry.bytes == pytest.approx(8 * 8 * 10 * once)  # micro-batches, layers, collectives of one
    kept = step(Layout(data=2, tensor=4, micro_batch=4, overlaps=False, keeps_gathered=True))
    assert cost(kept, "tensor") == pytest.approx(0.8 * entry.seconds)


def test_ranks_of_a_context_axis_reduce_their_gradients():
    layouts = Layout(data=8, micro_batch=8), Layout(data=4, context=2, micro_batch=16)
    data, context = (step(layout).costs() for layout in layouts)
    (whole,) = [c for c in data if c.name.endswith("reduction of gradients")]
    parts = {c.name: c for c in context if c.name.endswith("reduction of gradients")}
    assert set(parts) == {"data: reduction of gradients", "context: reduction of gradients"}
    received = 2 * 4 * (8 * BLOCK + 2 * 32000 * 1024)  # bytes of a reduce-scatter and a gather, before (n - 1) / n
    assert whole.bytes == pytest.approx(received * 7 / 8)
    assert parts["data: reduction of gradients"].bytes == pytest.approx(received * 3 / 4)
    assert parts["context: reduction of gradients"].bytes == pytest.approx(received / 2)


def test_exposed_and_hidden_time_are_that_of_the_collectives():
    few, many = (step(Layout(fsdp=8, micro_batch=1), length=length) for length in (128, 8192))
    for found, most_is_hidden in ((few, False), (many, True)):
        (entry,) = [c for c in found.costs() if c.name.startswith("fsdp")]
        link = found.links["fsdp"]
        alpha = (3 * 8 + 1) * link.alpha_us * 1e-6
        whole = found.micro_batches * alpha + entry.bytes / link.bytes_per_s
        assert entry.seconds + entry.hidden == pytest.approx(whole)
        assert (entry.hidden > entry.seconds) == most_is_hidden


def test_the_bubble_is_the_stages_less_one_over_the_micro_batches():
    for virtual in (1, 2):
        found = step(Layout(pipeline=8, micro_batch=2, virtual=virtual), sequences=64)
        once = cost(found, "fsdp") + cost(found, "optimizer") + cost(found, "data")
        busy = found.seconds - cost(found, "bubble") - once
        assert cost(found, "bubble") / busy == pytest.approx(7 / 32 / virtual)


def test_gathers_of_fsdp_hide_behind_enough_tokens():
    large, small = (step(Layout(fsdp=64, micro_batch=m), "h100:8x8", sequences=64 * m) for m in (8, 1))
    assert cost(large, "fsdp") / large.seconds < 0.05 < cost(small, "fsdp") / small.seconds


def test_slices_reduce_the_part_that_one_chip_holds():
    found = step(Layout(slices=4, fsdp=16, micro_batch=4), "4*v5e:4x4", sequences=256)
    (entry,) = [c for c in found.costs() if c.name.startswith("slices")]
    assert entry.bytes == pytest.approx(2 * 3 / 4 * 4 * MODEL.parameters / 16)


def test_a_vocabulary_that_is_not_aligned_is_slow_on_gpus_alone():
    odd = dataclasses.replace(MODEL, vocab=32001)
    for where, factor in (("h100:8", 8.0), ("v5e:4x2", 1.0)):
        times = [cost(step(Layout(data=8, micro_batch=8), where, model=m), "matmuls of the") for m in (MODEL, odd)]
        assert times[1] / times[0] == pytest.approx(factor, rel=1e-3)


OUTLIER = "nanotron 1-8-1-32, 8 H100"  # its own published step takes four times the sum of its parts; see the page


def test_published_rows_are_predicted():
    rows = published.rows()
    errors = {r.name: abs(r.error()) for r in rows}
    assert statistics.median(errors.values()) <= 0.10
    assert [name for name, error in errors.items() if error > 0.25] == [OUTLIER]
    assert all(abs(peak(r.step).total / r.memory_bytes - 1) <= 0.15 for r in rows if r.memory_bytes)
    assert published.rank_correlation([r for r in rows if r.group == "sweep"]) >= 0.9


@pytest.mark.parametrize("series", ["16B v5e", "64B v5e"])
def test_the_fall_of_mfu_over_slices_is_the_published_one(series):
    rows = [r for r in published.rows() if r.group == series]
    falls = [100 * (getattr(rows[0], m)() - getattr(rows[-1], m)()) for m in ("predicted", "published")]
    assert falls[0] == pytest.approx(falls[1], abs=3.0)
