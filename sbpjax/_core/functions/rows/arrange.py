"""Op table: join, repeat, flip and roll, and dtype queries. Dims that are not moved keep a split."""

from __future__ import annotations

from ..table.table import FN, METHOD, alias, op, written

FUNCTIONS = "sbpjax._core.functions.elementwise"
READ = FN | METHOD
AXIS = {"axis": "dim"}

op("cat(tensors, dim=0)", "shapes.arrange.cat", also="concat concatenate", names={"inputs": "tensors"}, amp="widest")
op("stack(tensors, dim=0)", "shapes.arrange.stack", names={"inputs": "tensors"}, amp="widest")
op("hstack(tensors)", "shapes.arrange.hstack", amp="widest")
op("vstack(tensors)", "shapes.arrange.vstack", also="row_stack", amp="widest")
op("dstack(tensors)", "shapes.arrange.dstack", amp="widest")
op("column_stack(tensors)", "shapes.arrange.column_stack", amp="widest")
op("repeat(input, *repeats)", "shapes.arrange.repeat", READ, names={"repeat_shape": "*"}, out=False)
op("tile(input, *dims)", "shapes.arrange.tile", READ, check="some_dims", out=False)
op("flip(input, *dims)", "shapes.arrange.flip", READ, check="some_dims", out=False)
op("roll(input, shifts, dims=None)", "shapes.arrange.roll", READ, out=False)
op("fliplr(input)", "shapes.arrange.fliplr", READ)
op("flipud(input)", "shapes.arrange.flipud", READ)
op("rot90(input, k=1, dims=(0, 1))", "shapes.arrange.rot90", READ)
written("repeat_interleave", FUNCTIONS, READ, names=AXIS, strict=True)
written("meshgrid atleast_1d atleast_2d atleast_3d broadcast_tensors", FUNCTIONS)
written("is_floating_point is_complex is_nonzero numel clone", FUNCTIONS, READ)
alias("fill(input: Tensor, value)", "input.clone().fill_(value)")
written("is_tensor result_type promote_types can_cast", FUNCTIONS)
