"""Names of OneFlow that do not exist here, with their replacements.

They are internals of OneFlow (kernels of gradients, readers of its own record format, updates of
optimizers as ops, switches of its compiler), or older than its global tensors. Access to such a name raises
`AbsentError` with the replacement:

    >>> sbpjax._C.dispatch_adam_update
    AbsentError: sbpjax._C.dispatch_adam_update …
      fix:  sbpjax.optim.Adam(...).step()

The tables map patterns to replacements; the first match counts. They are printed in
`docs/reference/api_coverage.md` and `docs/how_to/oneflow_scripts.md`.
"""

from __future__ import annotations

import fnmatch

from sbpjax.errors import AbsentError, MissingNameError, page

TABLE: tuple[tuple[str, str], ...] = (
    ("_C.dispatch_*_update", "sbpjax.optim: SGD, Adam, AdamW, LAMB, … and their step()"),
    ("_C.dispatch_*reader _C.dispatch_*decode* _C.dispatch_*loader", "sbpjax.utils.data.DataLoader"),
    ("_C.dispatch_image* _C.dispatch_crop* _C.dispatch_coin_flip", "sbpjax.utils.data.DataLoader with a transform"),
    ("_C.dispatch_*", "the function itself, or the module, in sbpjax"),
    ("_C.*_grad _C.*_grad_grad _C.*_backward* _C.*grad*", "sbpjax.autograd.grad of the function"),
    ("_C.fused_* _C.*_nhwc _C.cudnn*", "the composition of plain ops: a compiled program fuses them"),
    ("_C.stream_touch _C.*ccl* _C.comm_*", "x.to_global(placement, sbp), or sbpjax.distributed"),
    ("_C.one_embedding_* _C.embedding_*", "sbpjax.one_embedding.MultiTableEmbedding"),
    ("_C.*tensor_buffer* _C.*read*", "sbpjax.utils.data.DataLoader"),
    ("_C.*", "the function of the same purpose in sbpjax or sbpjax.nn.functional"),
    ("one_embedding.*", "sbpjax.one_embedding.MultiTableEmbedding, sbpjax.optim"),
    ("jit jit.*", "sbpjax.compile"),
    ("multiprocessing multiprocessing.*", "Python's multiprocessing, or sbpjax.distributed for ranks"),
    ("onnx onnx.*", "nn.Graph.export, which writes StableHLO"),
    ("remat remat.*", "sbpjax.utils.checkpoint.checkpoint, graph.config.activation_checkpointing"),
    ("sysconfig sysconfig.*", "sbpjax.env"),
    (
        "framework framework.* core ir ir.* scope_util session_ctx support function_config FunctionConfig hook",
        "sbpjax.compile",
    ),
    ("nn.*Reader nn.*Decoder* nn.image nn.image.*", "sbpjax.utils.data.DataLoader"),
    ("decode_onerec", "sbpjax.utils.data.DataLoader with a transform"),
    ("nn.qat nn.qat.*", "sbpjax.nn.QatConv1d, QatConv2d, QatConv3d"),
    ("*tensor_buffer*", "a list of tensors"),
    (
        "nn.DistributedPariticalFCSample distributed_partial_fc_sample",
        "sbpjax.nn.Linear with a weight under sbp split(0)",
    ),
    ("nn.AllReduce", "x.to_global(placement, sbpjax.sbp.broadcast)"),
    ("nn.FusedMLP", "sbpjax.nn.Sequential of Linear and ReLU: a compiled program fuses them"),
    ("stateful_op *.to_consistent to_consistent *.is_consistent", "to_global, is_global: the newer names"),
    ("*.is_eager", "nothing: every tensor outside a graph is eager"),
    ("is_deprecated oneflow_deprecate docstr *_path oneflow_python_base_dir", "nothing: internal to OneFlow"),
    (
        "atexit_hook ExitHook register_class_method_util env_util version ignore script",
        "nothing: internal to OneFlow",
    ),
)

OLD: tuple[tuple[str, str], ...] = (
    (
        "scope scope.*",
        "x.to_global(placement, sbp), module.to_global(placement, sbp), with a placement from sbpjax.placement",
    ),
    ("distribute distribute.*", "sbpjax.sbp.split(dim), sbpjax.sbp.broadcast"),
    ("get_variable", "sbpjax.nn.Parameter in an nn.Module, with to_global for its layout"),
    ("layers layers.*", "sbpjax.nn.Linear, Conv2d, …; model_distribute= is weight.to_global(placement, sbp)"),
    ("*_initializer", "sbpjax.nn.init"),
    ("global_function", "sbpjax.nn.Graph, or sbpjax.compile around a function"),
    ("config config.*", "python -m sbpjax.distributed.launch, sbpjax.env, and self.config in an nn.Graph"),
    ("pack unpack", "self.config.set_gradient_accumulation_steps(n) in an nn.Graph"),
    (
        "typing typing.* FixedTensorDef MirroredTensorDef",
        "nothing: build takes tensors, which have shape and dtype",
    ),
    ("optimizer optimizer.*", "sbpjax.optim, and add_optimizer in an nn.Graph"),
    ("losses losses.*", "loss.backward() in the build of an nn.Graph"),
    ("math math.* experimental experimental.*", "the function of the same name in sbpjax or sbpjax.nn.functional"),
    ("watch watch_diff", "print(x), and x.register_hook for its gradient"),
    ("consistent_* *.consistent_*", "placement= and sbp= at the creation of a tensor"),
)


def row(name: str) -> tuple[str, str] | None:
    """Return the row of the tables that matches a name (without ``sbpjax.``)."""
    for patterns, instead in (*TABLE, *OLD):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split()):
            return patterns, instead
    return None


def absent_name_error(space: str, name: str) -> AttributeError:
    """Return the error for a name that a package does not have."""
    full = f"{space}.{name}" if space else name
    found = None if name.startswith("__") else row(full)
    package = f"sbpjax.{space}" if space else "sbpjax"
    if found is None:
        return MissingNameError.for_name(package, name)
    if found in OLD:
        rule = f"OneFlow used this name before it had global tensors; see {page('how_to/oneflow_scripts.md')}"
    else:
        rule = "a name of OneFlow without a meaning here"
    return AbsentError(f"{package}.{name}", "a name of OneFlow", rule, found[1])
