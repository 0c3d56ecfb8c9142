"""Reading collectives from HLO text."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core.compiler import hlo


def _line(result, op, rest):
    return f"ENTRY %main (x: f32[4]) -> f32[4] {{\n  ROOT %r = {result} {op}(%x), {rest}\n}}\n"


@pytest.mark.parametrize(
    "result, op, rest, kind, wire",
    [
        ("f32[128,4]{1,0}", "all-reduce", "replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add", "all-reduce", 3072),
        ("(f32[64]{0}, /*index=1*/bf16[32]{0})", "all-reduce", "replica_groups=[1,8]<=[8]", "all-reduce", 560),
        ("f32[64]{0}", "all-gather", "replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}", "all-gather", 128),
        ("(f32[32]{0}, f32[64]{0})", "all-gather-start", "replica_groups={{0,1}}", "all-gather", 128),
        ("(f32[32], f32[64], u32[]{:S(2)}, u32[])", "all-gather-start", "replica_groups={{0,1}}", "all-gather", 128),
        ("((f32[8], f32[4]), (f32[16], f32[8]))", "all-gather-start", "replica_groups=[4,2]<=[8]", "all-gather", 48),
        ("((f32[64]{0}), f32[16]{0})", "reduce-scatter-start", "replica_groups=[2,4]<=[8]", "reduce-scatter", 192),
        ("f32[16]{0}", "reduce-scatter", "replica_groups={{0,1,2,3}}, dimensions={0}", "reduce-scatter", 192),
        ("f32[16]{0}", "all-to-all", "replica_groups={{0,1,2,3}}, dimensions={0}", "all-to-all", 48),
        ("s32[8]{0}", "collective-permute", "source_target_pairs={{0,1},{1,0}}", "collective-permute", 32),
        ("s32[8]{0}", "collective-permute", "source_target_pairs={{0,0},{1,2},{2,1}}", "collective-permute", 32),
        ("f32[16]{0}", "all-reduce", "replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1'}", "all-reduce", 96),
        ("f32[16]{0}", "all-reduce", "replica_groups=mesh['a'=2,'b'=4] {'a','b'}", "all-reduce", 112),
    ],
)
def test_lines(result, op, rest, kind, wire):
    (found,) = hlo.collectives(_line(result, op, rest))
    assert (found.kind, found.interconnect_bytes) == (kind, wire)


def test_an_all_reduce_fused_with_its_slice_is_a_reduce_scatter():
    text = """%all-reduce-scatter.1 (input: f32[64]) -> f32[16] {
  %all-reduce.8 = f32[64]{0} all-reduce(%input), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add
  ROOT %slice = f32[16]{0} dynamic-slice(%all-reduce.8, %at), dynamic_slice_sizes={16}
}

ENTRY %main (x: f32[64]) -> f32[16] {
  ROOT %fusion = f32[16]{0} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.1
}
"""
    (found,) = hlo.collectives(text)
    assert (found.kind, found.block_bytes, found.interconnect_bytes) == ("reduce-scatter", 256, 192)


def test_of_several_sums_in_one_fused_reduce_scatter_all_count():
    shapes = "(f32[64]{0}, f32[32]{0}, f32[32]{0})"
    text = f"""%all-reduce-scatter.2 (a: f32[64], b: f32[32], c: f32[32]) -> (f32[16], f32[8], f32[8]) {{
  %all-reduce.9 = {shapes} all-reduce(%a, %b, %c), replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, to_apply=%add
}}

ENTRY %main (x: f32[64]) -> f32[16] {{
  ROOT %fusion = (f32[16], f32[8], f32[8]) fusion(%x, %y, %z), kind=kCustom, calls=%all-reduce-scatter.2
}}
"""
    (found,) = hlo.collectives(text)
    assert (found.kind, found.operands, found.block_bytes, found.interconnect_bytes) == ("reduce-scatter", 3, 512, 384)


def test_a_loop_whose_length_is_in_its_condition():
    text = """%cond (p: (u32[], u32[], f32[32])) -> pred[] {
  %zero = u32[]{:T(128)} constant(0)
  %six = u32[]{:T(128)} constant(6), metadata={op_name="while/cond"}
  %p = (u32[], u32[], f32[32]) parameter(0)
  %high = u32[] get-tuple-element(%p), index=1
  %same = pred[] compare(%high, %zero), direction=EQ
  %low = u32[] get-tuple-element(%p), index=0
  %less = pred[]{:T(512)} compare(%low, %six), direction=LT, metadata={op_name="while/cond/lt"}
  ROOT %and = pred[] and(%same, %less)
}

%body (q: (u32[], u32[], f32[32])) -> (u32[], u32[], f32[32]) {
  %x = f32[32] get-tuple-element(%q), index=2
  %ar = f32[32] all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %t = (u32[], u32[], f32[32]) tuple(%i, %j, %ar)
}

ENTRY %main (x: f32[32]) -> f32[32] {
  %w = (u32[], u32[], f32[32]) while(%init), condition=%cond, body=%body
}
"""
    (found,) = hlo.collectives(text)
    assert (found.count, found.interconnect_bytes) == (6, 6 * 192)


@pytest.mark.parametrize(
    "target, transfer, kind, nbytes",
    [
        ('"{1,2}x{0:7}"', "ALL_REDUCE", "all-reduce", 4096),
        ('"{1,2}x{0:7}"', "ALL_GATHER", "all-gather", 4096),
        ("{{100000,200000},{100001,200001}}", "ALL_TO_ALL", "all-to-all", 2048),
        ("{{100000->200000},{200000->100000}}", "COLLECTIVE_PERMUTE", "collective-permute", 4096),
    ],
)
def test_sends_between_slices_count(target, transfer, kind, nbytes):
    attributes = f'_xla_megascale_target={target},_xla_megascale_transfer_type="{transfer}"'
    line = f"  %s = (f32[1024]{{0}}, u32[], token[]) send(%x, %t), channel_id=2, frontend_attributes={{{attributes}}}"
    (found,) = hlo.collectives(f"ENTRY %main (x: f32[1024]) -> f32[1024] {{\n{line}\n}}\n")
    assert (found.kind, found.group, found.interconnect_bytes, found.between_slices) == (kind, 2, nbytes, True)


def test_groups_of_one_move_nothing():
    assert hlo.collectives(_line("f32[4]{0}", "all-reduce", "replica_groups={{0},{1}}")) == []


def test_loops_count():
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))

    def body(x):
        return jax.lax.scan(lambda c, _: (jax.lax.psum(c, "a") * 0.5, None), x, None, length=7)[0]

    spec = PartitionSpec()
    fn = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    x = jax.device_put(jnp.ones(32, jnp.float32), NamedSharding(mesh, spec))
    text = fn.lower(x).compile().as_text()
    assert hlo.total_interconnect_bytes(text) == 7 * 192
    assert sum(c.count for c in hlo.collectives(text)) == 7


def test_a_program_without_collectives():
    assert hlo.collectives(jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile().as_text()) == []
