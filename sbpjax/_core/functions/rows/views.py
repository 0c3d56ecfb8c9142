"""Op table: views, slices, copies of views, in-place reshapes; join, repeat, flip, roll. Views keep a split."""

from __future__ import annotations

from ..table.op_modules import arrange
from ..table.table import FN, METHOD, alias, custom, op

FUNCTIONS = "sbpjax._core.functions.elementwise"
SLICING = "sbpjax._core.functions.slicing"
IN_PLACE = "sbpjax._core.tensor.storage.reshape_in_place"
READ = FN | METHOD
AXIS = {"axis": "dim"}
SECTIONS = {"indices": "indices_or_sections", "sections": "indices_or_sections"}

VIEWS = "sbpjax._core.tensor.storage.views"
RESHAPING = "sbpjax._core.tensor.storage.reshaping"
SPLITTING = "sbpjax._core.tensor.storage.splitting"

custom("flatten unflatten ravel", RESHAPING, READ)
custom("t diagonal", VIEWS, READ)
custom("movedim", VIEWS, READ, also="moveaxis")
custom("transpose", VIEWS, READ, also="swapaxes swapdims", names={"axis0": "dim0", "axis1": "dim1"})
custom("narrow select squeeze unsqueeze", VIEWS, READ, names=AXIS)
custom("adjoint contiguous", VIEWS, READ)
custom("reshape", RESHAPING, READ, names={"shape": "*"})
custom("permute", VIEWS, READ, names={"dims": "*"})
custom("view", RESHAPING, READ, names={"size": "*", "dtype": "*"})
custom("expand", VIEWS, READ, names={"size": "*"})
custom("broadcast_to", VIEWS, READ, names={"shape": "size"})
custom("Tensor.expand_as", VIEWS, names={"input": "other"})
custom("Tensor.size", VIEWS, names={"idx": "dim"})
custom("Tensor.view_as Tensor.reshape_as", RESHAPING)
custom("Tensor.unfold Tensor.stride Tensor.is_contiguous", VIEWS)
custom("split", SPLITTING, READ, names={"tensor": "self"})
custom("chunk", SPLITTING, READ, also="unsafe_chunk", names=AXIS)
custom("unbind", SPLITTING, READ, names=AXIS)
custom("tensor_split", SPLITTING, READ, names={"tensor_indices_or_sections": "indices_or_sections", **AXIS})
custom("hsplit vsplit", SLICING, READ, names=SECTIONS)
custom("dsplit split_with_sizes unsafe_split", SLICING, READ)
custom("narrow_copy", SLICING, READ, out=True)
custom("broadcast_shapes slice_update", SLICING)
custom("slice", SLICING, own="slice_")
custom(
    """alias_copy detach_copy diagonal_copy expand_copy permute_copy select_copy split_copy split_with_sizes_copy
    squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy
    view_as_real_copy""",
    SLICING,
    out=True,
)
custom("Tensor.squeeze_ Tensor.unsqueeze_ Tensor.t_", IN_PLACE)
custom("Tensor.transpose_", IN_PLACE, also="swapaxes_ swapdims_")

op("cat(tensors, dim=0)", arrange.cat, also="concat concatenate", names={"inputs": "tensors"}, amp="widest")
op("stack(tensors, dim=0)", arrange.stack, names={"inputs": "tensors"}, amp="widest")
op("hstack(tensors)", arrange.hstack, amp="widest")
op("vstack(tensors)", arrange.vstack, also="row_stack", amp="widest")
op("dstack(tensors)", arrange.dstack, amp="widest")
op("column_stack(tensors)", arrange.column_stack, amp="widest")
op("repeat(input, *repeats)", arrange.repeat, READ, names={"repeat_shape": "*"}, out=False)
op("tile(input, *dims)", arrange.tile, READ, check="check_dims_given", out=False)
op("flip(input, *dims)", arrange.flip, READ, check="check_dims_given", out=False)
op("roll(input, shifts, dims=None)", arrange.roll, READ, out=False)
op("fliplr(input)", arrange.fliplr, READ)
op("flipud(input)", arrange.flipud, READ)
op("rot90(input, k=1, dims=(0, 1))", arrange.rot90, READ)
custom("repeat_interleave", FUNCTIONS, READ, names=AXIS, strict=True)
custom("meshgrid atleast_1d atleast_2d atleast_3d broadcast_tensors", FUNCTIONS)
custom("is_floating_point is_complex is_nonzero numel clone", FUNCTIONS, READ)
alias("fill(input: Tensor, value)", "input.clone().fill_(value)")
custom("is_tensor result_type promote_types can_cast", FUNCTIONS)
