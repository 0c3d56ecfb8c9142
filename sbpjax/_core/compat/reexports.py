"""Re-export modules: import paths of OneFlow and PyTorch for names that sbpjax has elsewhere.

    from oneflow.nn.modules.conv import _ConvNd      # names of nn.layers.conv and its neighbours
    import sbpjax.boxing.nccl as nccl                # settings without effect, of _core.compat.nccl

A row of `REEXPORTS` is such a module: a title for its docstring and the modules that define its names. `Finder` makes
it when it is first imported, so that none costs anything before.
"""

from __future__ import annotations

import importlib
import sys
from fnmatch import fnmatchcase
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# ``module:pattern,pattern`` selects the names of a module of sbpjax that fit, by default all functions and classes that
# are defined there; ``new=old`` gives one of the names before it another one.
_LAYERS = {
    "activation": ("activation functions", "nn.layers.activation nn.layers.attention:MultiheadAttention"),
    "adaptive": ("a softmax of many classes", "nn.layers.adaptive"),
    "batchnorm": (
        "batch normalisation",
        "nn.layers.batchnorm:[!F]*,_[!F]* nn.lazy:LazyBatchNorm*,_LazyNorm _LazyNormBase=_LazyNorm",
    ),
    "batchnorm_fused": (
        "batch normalisation with relu",
        "nn.layers.batchnorm:Fused*,_Fused* _FusedNormBase=_FusedBatchNorm",
    ),
    "channelshuffle": ("channels dealt out", "nn.layers.vision:ChannelShuffle"),
    "container": (
        "modules that hold others",
        "nn.containers:[!_]* nn.parameter_containers:[!_]* _core.compat.layer_helpers:_addindent",
    ),
    "conv": (
        "convolutions",
        "nn.layers.conv nn.layers.conv_transpose nn.lazy:LazyConv*,_LazyConvXdMixin _ConvNd=_Conv "
        "_ConvTransposeNd=_ConvTranspose _ConvTransposeMixin=_ConvTranspose",
    ),
    "distance": ("distances", "nn.layers.distance"),
    "dropout": ("random zeros", "nn.layers.dropout _DropoutNd=_Dropout"),
    "fake_quantization": ("fake quantisation", "nn.quantization:FakeQuantization"),
    "flatten": ("dims joined and taken apart", "nn.layers.linear:Flatten,Unflatten"),
    "fold": ("patches and columns", "nn.layers.vision:Fold,Unfold"),
    "instancenorm": ("instance normalisation", "nn.layers.instancenorm nn.lazy:LazyInstanceNorm*"),
    "lazy": (
        "modules initialised by their first input",
        "nn.lazy:LazyModuleMixin,UninitializedTensorMixin _UninitializedTensorMixin=UninitializedTensorMixin",
    ),
    "linear": ("linear layers", "nn.layers.linear:Bilinear,Identity,*Linear nn.lazy:LazyLinear"),
    "loss": ("losses", "nn.layers.loss nn.layers.margin_loss _WeightedLoss=_Weighted"),
    "min_max_observer": ("ranges", "nn.quantization:MinMaxObserver"),
    "module": (
        "the base class",
        "nn.hooks:register_module_* nn.module:Module nn.state:EXTRA_STATE_KEY,IncompatibleKeys "
        "_IncompatibleKeys=IncompatibleKeys _EXTRA_STATE_KEY_SUFFIX=EXTRA_STATE_KEY "
        "_core.compat.layer_helpers:_addindent,_forward_unimplemented",
    ),
    "moving_average_min_max_observer": ("ranges that follow", "nn.quantization:MovingAverageMinMaxObserver"),
    "normalization": ("normalisation within one sample", "nn.layers.normalization:[!_]*"),
    "padding": (
        "padding",
        "nn.layers.padding _CircularPadNd=_CircularPad _ConstantPadNd=_ConstantPad _ReflectionPadNd=_ReflectionPad "
        "_ReplicationPadNd=_ReplicationPad",
    ),
    "pixelshuffle": ("channels as pixels", "nn.layers.vision:Pixel*"),
    "pooling": (
        "pooling",
        "nn.layers.pooling nn.layers.unpooling _MaxPoolNd=_MaxPool _AvgPoolNd=_AvgPool "
        "_AdaptiveAvgPoolNd=_AdaptiveAvgPool _AdaptiveMaxPoolNd=_AdaptiveMaxPool "
        "_LPPoolNd=_LPPool _MaxUnpoolNd=_MaxUnpool",
    ),
    "quantization": ("quantisation", "nn.quantization:Quantization"),
    "rnn": (
        "recurrent layers",
        "nn.layers.rnn:[!_]* _core.compat.layer_helpers:apply_permutation _apply_permutation=apply_permutation",
    ),
    "sparse": ("tables", "nn.layers.embedding:[!_]*"),
    "transformer": (
        "transformers",
        "nn.layers.transformer _get_activation_fn=_activation _get_clones=_copies "
        "_core.compat.layer_helpers:_generate_square_subsequent_mask,_get_seq_len,_detect_is_causal_mask",
    ),
    "upsampling": ("resizing", "nn.layers.vision:Upsampl*"),
    "utils": (
        "numbers as tuples of one number per dim",
        "_core.compat.layer_helpers:_ntuple,_single,_pair,_triple,_quadruple,_reverse_repeat_tuple,consume_prefix*",
    ),
}
REEXPORTS: dict[str, tuple[str, str]] = {
    "_oneflow_internal": (
        "names that programs use of OneFlow's compiled module",
        "_core.compat.small:cpu_broadcast,Tensor",
    ),
    "asyncs": ("`oneflow.asyncs`: blocks whose ops another thread issues", "_core.compat.small:Thread,thread"),
    "backends": (
        "settings of PyTorch's backends, kept and without effect",
        "_core.compat.backends:cpu,cuda,cudnn,mkl,mkldnn,mps,openmp,opt_einsum",
    ),
    "boxing": ("settings of how OneFlow's runtime moves data; ours is `sbpjax.boxing_policy`", ""),
    "boxing.nccl": (
        "settings of OneFlow's use of NCCL, kept and without effect",
        "_core.compat.nccl _core.compat.nccl:settings",
    ),
    "autograd.function": (
        "operations with a backward of the user's own",
        "_core.tensor.tape.function:Function,FunctionCtx,FunctionNode,once_differentiable",
    ),
    "nn.graph": (
        "OneFlow's module of graphs, here `sbpjax.graph`",
        "sbpjax.graph.graph:Graph sbpjax.graph.module_proxy:GraphModule,GraphTensor,Proxy,ProxyModule",
    ),
    "nn.graph.graph_config": ("OneFlow's place of the options of a graph", "sbpjax.graph.config:GraphConfig"),
    "nn.modules": ("PyTorch's places of its layers, which are `sbpjax.nn`", "nn.module:Module"),
    **{f"nn.modules.{name}": (f"PyTorch's place for {about}", row) for name, (about, row) in _LAYERS.items()},
    "nn.utils.clip_grad": ("gradient clipping", "optim.clip_grad:[!_]*"),
    "nn.utils.stateless": (
        "an older place of `sbpjax.func.functional_call`",
        "_core.tracing.functional_call:functional_call",
    ),
    "unittest.env": (
        "nodes, devices and processes of a test run, under OneFlow's names and variables",
        "_core.compat.unittest_env",
    ),
    "utils.hooks": (
        "handles of hooks, under PyTorch's name of their module",
        "sbpjax._core.tensor.nodes.node:RemovableHandle",
    ),
    "utils.model_zoo": ("an older name of `sbpjax.hub`'s download", "sbpjax._core.compat.hub:load_url,tqdm"),
}


class Finder:
    """Makes the modules of `REEXPORTS`; Python calls it for modules without a file."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the table, None for any other."""
        if not name.startswith("sbpjax.") or name[7:] not in REEXPORTS:
            return None
        return ModuleSpec(name, self, origin="sbpjax", is_package=bool(_submodule_names(name[7:])))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module with its names."""
        module_path = module.__name__[7:]
        about, row = REEXPORTS[module_path]
        fields = vars(module)
        fields["__doc__"] = f"{about[0].upper()}{about[1:]}."
        for word in row.split():
            new, is_other, old = word.partition("=")
            if is_other:
                fields[new] = fields[old]
            else:
                fields.update(_names(module.__name__, *word.partition(":")[::2]))
        fields["__getattr__"] = partial(_load_attribute, module_path)
        fields["__dir__"] = lambda: sorted({*fields, *_submodule_names(module_path)})


def _names(module: str, place: str, patterns: str) -> dict[str, Any]:
    source = importlib.import_module(place if place.startswith("sbpjax.") else f"sbpjax.{place}")
    requested = patterns.split(",") if patterns else ["*"]
    homes = (source.__name__, module)
    return {
        name: value
        for name, value in vars(source).items()
        if name in requested
        or (getattr(value, "__module__", None) in homes and any(fnmatchcase(name, pattern) for pattern in requested))
    }


def _submodule_names(module_path: str) -> list[str]:
    return [name[len(module_path) + 1 :] for name in REEXPORTS if name.startswith(f"{module_path}.")]


def _load_attribute(module_path: str, name: str) -> Any:
    if name in _submodule_names(module_path):
        return importlib.import_module(f"sbpjax.{module_path}.{name}")
    if module_path == "nn.modules" and not name.startswith("__"):
        return getattr(sys.modules["sbpjax.nn"], name)
    raise AttributeError(f"module 'sbpjax.{module_path}' has no attribute {name!r}")


sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
