"""Where in sbpjax the modules of PyTorch are, when they do not lie under the same name."""

from __future__ import annotations

_NAMES = "sbpjax.mock.torch_names"

# PyTorch's modules of one idea whose names sbpjax has in one package
_FLAT = {
    "torch.nn.modules": (
        "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm "
        "linear loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling lazy",
        ("sbpjax.nn",),
    ),
    "torch.nn": ("modules parameter cpp _reduction grad qat quantized intrinsic", ("sbpjax.nn",)),
    "torch.nn.parallel": ("distributed data_parallel", ("sbpjax.nn.parallel",)),
    "torch.nn.utils": (
        "clip_grad convert_parameters parametrizations spectral_norm stateless init",
        ("sbpjax.nn.utils",),
    ),
    "torch.optim": (
        "optimizer adam adamw adagrad adadelta adamax asgd lbfgs nadam radam rmsprop rprop sgd _functional",
        ("sbpjax.optim",),
    ),
    "torch.autograd": ("function variable grad_mode anomaly_mode gradcheck", ("sbpjax.autograd", "sbpjax")),
    "torch.distributions": (
        "bernoulli beta binomial categorical cauchy chi2 constraints dirichlet distribution exponential gamma "
        "geometric gumbel half_cauchy half_normal independent kl laplace log_normal mixture_same_family multinomial "
        "multivariate_normal negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli "
        "relaxed_categorical studentT transformed_distribution transforms uniform utils von_mises weibull",
        ("sbpjax.distributions",),
    ),
    "torch.utils.data": ("dataset dataloader sampler _utils", ("sbpjax.utils.data",)),
    "torch": ("functional random serialization storage _tensor _tensor_str return_types", ("sbpjax",)),
}

# modules of PyTorch's own sharded tensors, which libraries import to ask whether a tensor is one
_SHARDED = (
    "tensor tensor._utils tensor.placement_types tensor.parallel tensor.device_mesh device_mesh fsdp _composable "
    "_composable.fsdp _functional_collectives _tensor checkpoint checkpoint.state_dict checkpoint.hf_storage "
    "algorithms algorithms._checkpoint algorithms._checkpoint.checkpoint_wrapper pipelining "
    "fsdp.fully_sharded_data_parallel fsdp.wrap tensor.experimental"
)


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for parent, (names, sources) in _FLAT.items():
        table.update({f"{parent}.{name}": sources for name in names.split()})
    for name in ("accelerator", "version", "jit", "fx", "library", "overrides", "types", "compiler"):
        table[f"torch.{name}"] = (f"{_NAMES}.{name}",)
    for name in _SHARDED.split():
        table[f"torch.distributed.{name}"] = (f"{_NAMES}.sharded",)
    table.update(
        {
            "torch": (f"{_NAMES}.first", "sbpjax", f"{_NAMES}.more"),
            "torch._C": (f"{_NAMES}.c", "sbpjax._C"),
            "torch.serialization": (f"{_NAMES}.serialization", "sbpjax"),
            "torch._C._nn": ("sbpjax.nn.functional",),
            "torch.cuda": ("sbpjax.cuda", f"{_NAMES}.cuda"),
            "torch._dynamo": (f"{_NAMES}.compiler",),
            "torch._dynamo.eval_frame": (f"{_NAMES}.compiler",),
            "torch._dynamo.external_utils": (f"{_NAMES}.compiler",),
            "torch._dynamo._trace_wrapped_higher_order_op": (f"{_NAMES}.compiler",),
            "torch._jit_internal": (f"{_NAMES}.misc",),
            "torch._utils": (f"{_NAMES}.misc",),
            "torch.fx.proxy": (f"{_NAMES}.fx",),
            "torch.fx.node": (f"{_NAMES}.fx",),
            "torch.fx.graph_module": (f"{_NAMES}.fx",),
            "torch.fx._symbolic_trace": (f"{_NAMES}.fx",),
            "torch.nn.attention": (f"{_NAMES}.nn_attention",),
            "torch.nn.attention.flex_attention": (f"{_NAMES}.flex_attention",),
            "torch.nn.common_types": (f"{_NAMES}.types",),
            "torch.nn.modules.utils": (f"{_NAMES}.modules_utils",),
            "torch.utils._pytree": (f"{_NAMES}.pytree",),
            "torch.utils.dlpack": ("sbpjax.tensor.interop",),
            "torch.autograd.functional": ("sbpjax.autograd.functional",),
            "torch.autograd.graph": ("sbpjax.autograd.graph",),
        }
    )
    return table


TABLE = _table()
