"""The estimate of a TPU program's time from its text, on a program of a product, a sum and a loop."""

import pytest

from benchmarks import tpu_passes

TEXT = """HloModule step, is_scheduled=true

%product (p0: bf16[256,512], p1: bf16[512,1024]) -> bf16[256,1024] {
  %p0 = bf16[256,512]{1,0:T(8,128)(2,1)} parameter(0)
  %p1 = bf16[512,1024]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %dot = bf16[256,1024]{1,0:T(8,128)(2,1)} convolution(%p0, %p1), dim_labels=bf_io->bf
}

%cut (q0: f32[4096,128], q1: s32[]) -> f32[8,128] {
  %q0 = f32[4096,128]{1,0:T(8,128)} parameter(0)
  %q1 = s32[] parameter(1)
  ROOT %slice = f32[8,128]{1,0:T(8,128)} dynamic-slice(%q0, %q1, %q1), dynamic_slice_sizes={8,128}
}

%turn (t: (f32[4096,128])) -> (f32[4096,128]) {
  %t = (f32[4096,128]{1,0:T(8,128)}) parameter(0)
  %held = f32[4096,128]{1,0:T(8,128)} get-tuple-element(%t), index=0
  %more = f32[4096,128]{1,0:T(8,128)} negate(%held)
  ROOT %again = (f32[4096,128]{1,0:T(8,128)}) tuple(%more)
}

ENTRY %main (a: bf16[256,512], b: bf16[512,1024], c: f32[4096,128], i: s32[]) -> f32[8,128] {
  %a = bf16[256,512]{1,0:T(8,128)(2,1)} parameter(0)
  %b = bf16[512,1024]{1,0:T(8,128)(2,1)} parameter(1)
  %c = f32[4096,128]{1,0:T(8,128)} parameter(2)
  %i = s32[] parameter(3)
  %fusion = bf16[256,1024]{1,0:T(8,128)(2,1)} fusion(%a, %b), kind=kOutput, calls=%product
  %sum = f32[4096,128]{1,0:T(8,128)} all-reduce(%c), replica_groups={{0,1}}, to_apply=%add
  %begin = (f32[4096,128]{1,0:T(8,128)}) tuple(%sum)
  %loop = (f32[4096,128]{1,0:T(8,128)}) while(%begin), body=%turn, backend_config={"known_trip_count":{"n":"3"}}
  %last = f32[4096,128]{1,0:T(8,128)} get-tuple-element(%loop), index=0
  ROOT %part = f32[8,128]{1,0:T(8,128)} fusion(%last, %i), kind=kLoop, calls=%cut
}
"""


def test_every_instruction_takes_as_long_as_its_product_or_its_memory():
    product = max(
        2 * 256 * 512 * 1024 / tpu_passes.FLOPS, 2 * (256 * 512 + 512 * 1024 + 256 * 1024) / tpu_passes.MEMORY
    )
    whole, part = 4 * 4096 * 128, 4 * 8 * 128
    moved = 2 * whole + 3 * 2 * whole + 2 * part + 4  # the sum, three turns, and of the cut what is cut and its place
    assert tpu_passes.seconds(TEXT) == pytest.approx(product + moved / tpu_passes.MEMORY, rel=1e-6)


AHEAD = """HloModule step, is_scheduled=true

ENTRY %main (a: f32[4096,128]) -> f32[4096,128] {
  %a = f32[4096,128]{1,0:T(8,128)} parameter(0)
  %begin = (f32[4096,128]{1,0:T(8,128)S(1)}, f32[4096,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%a)
  %there = f32[4096,128]{1,0:T(8,128)S(1)} copy-done(%begin)
  ROOT %more = f32[4096,128]{1,0:T(8,128)} negate(%there)
}
"""


def test_an_operand_that_is_fetched_ahead_counts_four_times_more():
    moved = (4 + 2) * 4 * 4096 * 128
    assert tpu_passes.seconds(AHEAD) == pytest.approx(moved / tpu_passes.MEMORY, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("f32[1000,64]{1,0:T(8,128)}", 4 * 1000 * 128),
        ("f32[1000,64]{0,1:T(8,128)}", 4 * 1024 * 64),  # turned
        ("(bf16[8,128]{1,0:T(8,128)(2,1)}, u32[])", 2 * 8 * 128 + 4),
        ("f32[]{:T(128)}", 512),
    ],
)
def test_arrays_are_counted_in_tiles(kind, held):
    assert tpu_passes.nbytes(kind) == pytest.approx(held, abs=512)


ROLLED = """HloModule step, is_scheduled=true

%row (q0: f32[80,8,128], q1: s32[]) -> f32[1,8,128] {
  %q0 = f32[80,8,128]{2,1,0:T(8,128)} parameter(0)
  %q1 = s32[] parameter(1)
  %same = f32[80,8,128]{2,1,0:T(8,128)} bitcast(%q0)
  ROOT %slice = f32[1,8,128]{2,1,0:T(8,128)} dynamic-slice(%same, %q1), dynamic_slice_sizes={1,8,128}
}

%both (r0: f32[80,8,128], r1: s32[], r2: f32[80,8,128]) -> (f32[80,8,128], f32[1,8,128]) {
  %r0 = f32[80,8,128]{2,1,0:T(8,128)} parameter(0)
  %r1 = s32[] parameter(1)
  %r2 = f32[80,8,128]{2,1,0:T(8,128)} parameter(2)
  %read = f32[1,8,128]{2,1,0:T(8,128)} fusion(%r0, %r1), kind=kLoop, calls=%row
  %write = f32[80,8,128]{2,1,0:T(8,128)} dynamic-update-slice(%r2, %read, %r1)
  %named = f32[80,8,128]{2,1,0:T(8,128)} bitcast(%write)
  ROOT %results = (f32[80,8,128]{2,1,0:T(8,128)}, f32[1,8,128]{2,1,0:T(8,128)}) tuple(%named, %read)
}

%turn (t: (s32[], f32[80,8,128], f32[80,8,128])) -> (s32[], f32[80,8,128], f32[80,8,128]) {
  %t = (s32[], f32[80,8,128]{2,1,0:T(8,128)}, f32[80,8,128]{2,1,0:T(8,128)}) parameter(0)
  %at = s32[] get-tuple-element(%t), index=0
  %in = f32[80,8,128]{2,1,0:T(8,128)} get-tuple-element(%t), index=1
  %out = f32[80,8,128]{2,1,0:T(8,128)} get-tuple-element(%t), index=2
  %made = (f32[80,8,128]{2,1,0:T(8,128)}, f32[1,8,128]{2,1,0:T(8,128)}) fusion(%in, %at, %out), calls=%both
  %next = f32[80,8,128]{2,1,0:T(8,128)} get-tuple-element(%made), index=0
  ROOT %again = (s32[], f32[80,8,128]{2,1,0:T(8,128)}, f32[80,8,128]{2,1,0:T(8,128)}) tuple(%at, %in, %next)
}

%goes_on (u: (s32[], f32[80,8,128], f32[80,8,128])) -> pred[] {
  %u = (s32[], f32[80,8,128]{2,1,0:T(8,128)}, f32[80,8,128]{2,1,0:T(8,128)}) parameter(0)
  %count = s32[] get-tuple-element(%u), index=0
  %turns = s32[] constant(80)
  ROOT %less = pred[] compare(%count, %turns), direction=LT
}

ENTRY %main (a: (s32[], f32[80,8,128], f32[80,8,128])) -> (s32[], f32[80,8,128], f32[80,8,128]) {
  %a = (s32[], f32[80,8,128]{2,1,0:T(8,128)}, f32[80,8,128]{2,1,0:T(8,128)}) parameter(0)
  ROOT %loop = (s32[], f32[80,8,128], f32[80,8,128]) while(%a), condition=%goes_on, body=%turn
}
"""


def test_a_loop_over_stacks_reads_and_writes_a_slice_per_turn():
    turn = 3 * 4 * 8 * 128 + 4  # the slice read, written into the other stack and given, and its place
    assert tpu_passes.seconds(ROLLED, once=True) == pytest.approx(turn / tpu_passes.MEMORY, rel=1e-6)
    assert tpu_passes.seconds(ROLLED) == pytest.approx(80 * turn / tpu_passes.MEMORY, rel=1e-6)


@pytest.mark.parametrize(
    ("window", "places"),
    [
        ("", 1),
        (", window={size=2x2048}", 4096),
        (", window={size=8x2 pad=7_7x0_0 rhs_reversal=1x0}", 2),  # the first dim is one of batches
        (", window={size=8 stride=7 lhs_dilate=8}", 1),
    ],
)
def test_what_a_product_sums_over(window, places):
    """As libtpu 0.0.42 writes products: the batch dims are dims of a window, padded or dilated."""
    text = f"""HloModule step

ENTRY %main (a: bf16[8192,4096], b: bf16[4096,8192]) -> bf16[8192,8192] {{
  %a = bf16[8192,4096]{{1,0:T(8,128)(2,1)}} parameter(0)
  %b = bf16[4096,8192]{{1,0:T(8,128)(2,1)}} parameter(1)
  ROOT %dot = bf16[8192,8192]{{1,0:T(8,128)(2,1)}} convolution(%a, %b){window}, dim_labels=bf_io->bf
}}
"""
    assert tpu_passes.seconds(text) == pytest.approx(2 * 8192 * 8192 * 4096 * places / tpu_passes.FLOPS, rel=1e-6)
