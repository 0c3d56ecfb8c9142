"""Wrong calls that end otherwise than in PyTorch, each with its reason; `test_misuse` holds that the list is exact.

A line names an op and the changes to a good call of it that `misuse.wrong` makes.
"""

from tests.op_specs.misuse import CLASS, SILENT

# (what comes of it, the reason, the calls)
GROUPS = (
    (
        SILENT,
        "OneFlow 0.9 gives a value too (complex numbers, which it lacks, go the way of its booleans)",
        """
Tensor.random_: bool for 0; complex64 for 0
Tensor.where: complex64 for 1; float32 for 1; int64 for 1
masked_fill: int64 for 1
masked_select: complex64 for 1; float32 for 1; int64 for 1
nn.functional.batch_norm: float32 for 0
nn.functional.max_unpool2d: int64 for 0
randint_like: bool for 0; complex64 for 0
where: int64 for 0
        """,
    ),
    (
        SILENT,
        "PyTorch lacks a kernel for the dtype, whose values here are those of the definition",
        """
Tensor.bernoulli_: complex64 for 0
istft: complex64 for window
nn.functional.dropout: complex64 for 0; int64 for 0
nn.functional.local_response_norm: a last size for 0; sizes for 0
        """,
    ),
    (
        SILENT,
        "a layer's statistics and weights may have other dtypes than its input: they are computed with in the "
        "wider one",
        """
nn.functional.batch_norm: float32 for 1; float32 for 2
        """,
    ),
    (
        SILENT,
        "a number or a text stands for the whole number or the truth value that Python makes of it",
        """
histogram: a float for 1
lu_unpack: sizes for 0
nn.functional.batch_norm: text for training
range: a float for 2
        """,
    ),
    (
        SILENT,
        "a singular matrix gives infinities or NaN here: the op is one program and knows only at its end",
        """
cholesky_inverse: sizes for 0
        """,
    ),
    (
        SILENT,
        "dims of size 1 are added, or batch dims broadcast, as everywhere else",
        """
as_strided_scatter: 0 dims for 1
fft.fftshift: 0 dims for 0
fft.ifftshift: 0 dims for 0
index_reduce: 0 dims for 2
istft: more dims for 0
linalg.lstsq: more dims for 0; more dims for 1
linalg.tensorinv: 0 dims for 0
nn.functional.bilinear: 0 dims for 3
nn.functional.dropout1d: 0 dims for 0; more dims for 0
nn.functional.local_response_norm: more dims for 0
nn.functional.multi_head_attention_forward: more dims for 12
nn.functional.soft_margin_loss: 0 dims for 0
searchsorted: 0 dims for 0
        """,
    ),
    (
        SILENT,
        "no size is the size of one number, so that zeros(*x.shape) works for every x; range and normal "
        "likewise have defaults",
        """
empty: no arguments
normal: no arguments
ones: no arguments
rand: no arguments
randn: no arguments
range: no arguments
zeros: no arguments
        """,
    ),
    (
        SILENT,
        "the sizes that come out are empty or the default ones",
        """
combinations: a large number for 1
fft.rfftfreq: a negative number for 0
nn.functional.local_response_norm: a large number for 1
range: a large number for 2
unravel_index: negative numbers for 1
        """,
    ),
    (
        CLASS,
        "OneFlow's data_format or channel_pos, which stands last, is looked at before the arguments are counted",
        """
nn.functional.avg_pool1d: too many
nn.functional.avg_pool2d: too many
nn.functional.avg_pool3d: too many
nn.functional.conv1d: too many
nn.functional.conv2d: too many
nn.functional.conv3d: too many
nn.functional.conv_transpose1d: too many
nn.functional.conv_transpose2d: too many
nn.functional.conv_transpose3d: too many
nn.functional.fold: too many
nn.functional.max_pool1d: too many
nn.functional.max_pool2d: too many
nn.functional.max_pool3d: too many
nn.functional.unfold: too many
        """,
    ),
    (
        CLASS,
        "PyTorch stumbles over a dim that the tensor lacks, or over text, while it looks at sizes; here the "
        "shape or the type is named",
        """
Tensor.__getitem__: text for 1
addbmm: 0 dims for 1; 0 dims for 2
affine_grid_generator: 0 dims for 0
baddbmm: 0 dims for 1; 0 dims for 2
grid_sampler: 0 dims for 0; 0 dims for 1
grid_sampler_2d: 0 dims for 0; 0 dims for 1
grid_sampler_3d: 0 dims for 0; 0 dims for 1
index_reduce: 0 dims for 3
linalg.householder_product: 0 dims for 1
linalg.ldl_solve: 0 dims for 2
linalg.lu_solve: 0 dims for 1
lu_solve: 0 dims for 2
mv: 0 dims for 0
nn.functional.adaptive_avg_pool2d: 0 dims for 0
nn.functional.adaptive_avg_pool3d: 0 dims for 0
nn.functional.avg_pool2d: 0 dims for 0
nn.functional.cross_entropy: 0 dims for 0
nn.functional.grid_sample: 0 dims for 0; 0 dims for 1
nn.functional.lp_pool2d: 0 dims for 0
nn.functional.max_unpool1d: 0 dims for 0; text for 2
nn.functional.max_unpool2d: 0 dims for 0; text for 2
nn.functional.max_unpool3d: 0 dims for 0
nn.functional.unfold: 0 dims for 0
orgqr: 0 dims for 1
        """,
    ),
    (
        CLASS,
        "PyTorch's Python function stumbles over a missing attribute or an assertion; here it is a type, a "
        "shape or a value",
        """
Tensor.dim_order: an object for 0; text for 0
nn.functional.adaptive_avg_pool2d: an object for 0; text for 0
nn.functional.adaptive_avg_pool3d: an object for 0; text for 0
nn.functional.adaptive_max_pool2d: an object for 0; text for 0
nn.functional.adaptive_max_pool3d: an object for 0; text for 0
nn.functional.affine_grid: an object for 0; text for 0
nn.functional.binary_cross_entropy: an object for 0; an object for 1; text for 0; text for 1
nn.functional.binary_cross_entropy_with_logits: an object for 0; an object for 1; text for 0; text for 1
nn.functional.dropout1d: an object for 0; text for 0
nn.functional.dropout2d: an object for 0; text for 0
nn.functional.dropout3d: an object for 0; text for 0
nn.functional.embedding_bag: an object for 0; an object for 1; text for 0; text for 1
nn.functional.gaussian_nll_loss: an object for 0; text for 0
nn.functional.glu: an object for 0; text for 0
nn.functional.group_norm: an object for 0; text for 0
nn.functional.huber_loss: an object for 0; an object for 1; text for 0; text for 1
nn.functional.instance_norm: an object for 0; text for 0
nn.functional.interpolate: an object for 0; text for 0
nn.functional.l1_loss: an object for 0; an object for 1; text for 0; text for 1
nn.functional.linear_cross_entropy: an object for 0; an object for 1; an object for 2
nn.functional.linear_cross_entropy: text for 0; text for 1; text for 2
nn.functional.local_response_norm: an object for 0; text for 0
nn.functional.log_softmax: an object for 0; text for 0
nn.functional.lp_pool1d: an object for 0; text for 0
nn.functional.lp_pool2d: an object for 0; text for 0
nn.functional.lp_pool3d: an object for 0; text for 0
nn.functional.margin_ranking_loss: an object for 0; an object for 1; an object for 2; text for 0; text for 1
nn.functional.margin_ranking_loss: text for 2
nn.functional.max_unpool1d: an object for 0; an object for 1; text for 0; text for 1
nn.functional.max_unpool2d: an object for 0; text for 0
nn.functional.max_unpool3d: an object for 0; text for 0
nn.functional.mse_loss: an object for 0; an object for 1; text for 0; text for 1
nn.functional.multi_head_attention_forward: 0 dims for 0; 0 dims for 1; 0 dims for 2; a float for 3
nn.functional.multi_head_attention_forward: a float for 4; a large number for 3; a large number for 4
nn.functional.multi_head_attention_forward: a last size for 0; a last size for 1; a last size for 2
nn.functional.multi_head_attention_forward: a negative number for 3; a negative number for 4; an object for 0
nn.functional.multi_head_attention_forward: an object for 1; an object for 2; an object for 5; an object for 6
nn.functional.multi_head_attention_forward: more dims for 0; more dims for 1; more dims for 2; sizes for 0
nn.functional.multi_head_attention_forward: sizes for 1; sizes for 2; text for 0; text for 1; text for 2
nn.functional.multi_head_attention_forward: text for 3; text for 5; text for 6; too many
nn.functional.normalize: an object for 0; text for 0
nn.functional.sigmoid: an object for 0; text for 0
nn.functional.smooth_l1_loss: an object for 0; an object for 1; text for 0; text for 1
nn.functional.softmax: an object for 0; text for 0
nn.functional.softsign: an object for 0; text for 0
nn.functional.tanh: an object for 0; text for 0
nn.functional.tanhshrink: an object for 0; text for 0
nn.functional.triplet_margin_with_distance_loss: an object for 0; an object for 1; an object for 2; text for 0
nn.functional.triplet_margin_with_distance_loss: text for 1; text for 2
nn.functional.upsample: an object for 0; text for 0
nn.functional.upsample_bilinear: an object for 0; text for 0
nn.functional.upsample_nearest: an object for 0; text for 0
norm: an object for 0; text for 0
split: an object for 0
stft: an object for 0; text for 0
tensordot: an object for 0; an object for 1; text for 0; text for 1
unravel_index: an object for 0; text for 0
        """,
    ),
    (
        CLASS,
        "a list or a text of a wrong length or content: here its length or value is looked at before its type",
        """
Tensor.sum_to_size: a list of objects for 1; text for 1; too many
histogram: a list of objects for range
histogramdd: a list of objects for range
linalg.vector_norm: text for 1
repeat_interleave: text for 1
        """,
    ),
    (
        CLASS,
        "a number for a word: PyTorch raises TypeError from C++ and ValueError from Python; here it is "
        "TypeError everywhere",
        """
nn.functional.ctc_loss: a number for reduction
nn.functional.embedding_bag: a number for mode
nn.functional.grid_sample: a number for mode; a number for padding_mode
nn.functional.triplet_margin_loss: a number for reduction
        """,
    ),
    (
        CLASS,
        "here the shape or the value is named, which PyTorch calls not implemented",
        """
nn.functional.affine_grid: an empty list for 1; one more for 1
nn.functional.ctc_loss: int64 for 0
nn.functional.interpolate: 0 dims for 0; more dims for 0; other text for mode
nn.functional.multilabel_margin_loss: complex64 for 1
nn.functional.nll_loss: int64 for 0
        """,
    ),
    (
        CLASS,
        "of two mistakes PyTorch sees another one first, or takes text and objects for sequences of a wrong length",
        """
einsum: no arguments; too many
nn.functional.adaptive_avg_pool2d: text for 1
nn.functional.adaptive_avg_pool3d: text for 1
nn.functional.adaptive_max_pool2d: text for 1
nn.functional.adaptive_max_pool3d: text for 1
nn.functional.embedding_bag: more dims for 1
nn.functional.lp_pool2d: text for 2
nn.functional.lp_pool3d: text for 2
nn.functional.max_unpool3d: an object for 1; text for 1
nn.functional.upsample: a list of objects for size
nn.functional.upsample_bilinear: a list of objects for size
nn.functional.upsample_nearest: a list of objects for size
        """,
    ),
)


def listed() -> dict[tuple[str, str], str]:
    """Return what comes of each listed call, by op and change."""
    found = {}
    for kind, _, calls in GROUPS:
        for line in calls.split("\n")[1:-1]:
            name, _, changes = line.strip().partition(": ")
            found.update({(name, change): kind for change in changes.split("; ")})
    return found
