"""Other names of ops: in-place functions, copies of views, functions that `nn.functional` and the package share."""

from __future__ import annotations

import dataclasses

from tests.op_specs.engine import register, same
from tests.op_specs.engine.spec import SPECS
from tests.support.generate import Call

# `sbpjax.exp_(x)` writes to x, as `x.exp_()` does.
WRITING = """abs acos acosh addmv asin asinh atan atanh ceil clamp clamp_max clamp_min clip cos cosh deg2rad div erf
 erfc erfinv exp exp2 expm1 fix floor frac gcd i0 lcm ldexp log log10 log1p log2 logit mul nan_to_num neg negative
 rad2deg reciprocal round rsqrt sigmoid sin sinc sinh sqrt square sub tan tanh trunc xlogy arccos arccosh arcsin
 arcsinh arctan
 arctanh relu lerp add as_strided index_put gt index_add masked_fill""".split()
# The same op, whose result never shares memory with its input.
COPIES = """diagonal permute select split t transpose unbind unsqueeze squeeze expand as_strided view_as_real
 view_as_complex split_with_sizes detach alias unfold""".split()
# In `torch` and in `torch.nn.functional`.
SHARED = """adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d
 conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss
 feature_alpha_dropout group_norm hardshrink hinge_embedding_loss layer_norm margin_ranking_loss max_pool1d max_pool2d
 max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss rms_norm rrelu
 triplet_margin_loss""".split()


_REAL = {"view_as_complex": {"grad": False, "reason": "PyTorch has no gradient of the copy"}}


def _split_copy(torch):  # PyTorch's own takes one size
    return lambda *args, **kwargs: tuple(part.clone() for part in torch.split(*args, **kwargs))


def _of_views(name: str) -> str:
    return next((found for found in (name, f"Tensor.{name}") if found in SPECS), "")


def _writing(spec, name: str) -> None:
    """Give a spec to the function that writes: the first argument does not require grad, and has no shared elements."""

    def make(g):
        views, g.views = g.views, False
        made = spec.make(g)
        g.views = views
        first = dataclasses.replace(made.args[0], grad=False) if hasattr(made.args[0], "grad") else made.args[0]
        return Call((first, *made.args[1:]), made.kwargs)

    def reference(torch):  # some of them are OneFlow's, and methods alone in PyTorch
        return getattr(torch, name, None) or getattr(torch.Tensor, name)

    changes = {
        "make": make,
        "reference": reference,
        "grad": False,
        "method": False,
        "inplace": False,
        "out": False,
        "aliases": False,
    }
    register(dataclasses.replace(spec, name=name, alias_of=spec.name, **changes))


for _name in WRITING:
    if _name in SPECS and SPECS[_name].reference is None:
        _writing(SPECS[_name], f"{_name}_")
for _name in COPIES:
    if _of_views(_name):
        same(
            f"{_name}_copy",
            of=_of_views(_name),
            aliases=True,
            method=False,
            inplace=False,
            out=False,
            reference=_split_copy if _name == "split" else None,
            **_REAL.get(_name, {}),
        )
for _name in SHARED:

    def _functional(torch, name=_name):  # some of PyTorch's take numbers for words: reduction=1
        return getattr(torch.nn.functional, name)

    same(_name, of=f"nn.functional.{_name}", method=False, out=False, reference=_functional)
same("adjoint", of="Tensor.adjoint")
same("detach", of="Tensor.detach")
same("narrow_copy", of="narrow", method=False, out=False, reference=lambda torch: lambda *a: torch.narrow(*a).clone())
for _name in ("celu_", "selu_", "threshold_", "rrelu_"):
    same(_name, of=f"nn.functional.{_name}")
for _name in ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "pad"):  # OneFlow's, not PyTorch's

    def _peer(torch, name=_name):
        return getattr(torch.nn.functional, name)

    same(_name, of=f"nn.functional.{_name}", reference=_peer)
for _name in ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"):

    def _method(torch, name=_name):
        return getattr(torch.Tensor, name)

    same(_name, of=f"Tensor.{_name}", reference=_method)
same("view_copy", of="view", aliases=False)
same("adaptive_max_pool1d", of="nn.functional.adaptive_max_pool1d_with_indices", method=False, out=False)
same("zero_", of="Tensor.zero_")
same("fill_", of="Tensor.fill_")
same("unsafe_chunk", of="Tensor.unsafe_chunk")
same("unsafe_split", of="Tensor.unsafe_split")
same("alias_copy", of="clone", method=False)
