"""Table of PyTorch's modules in sbpjax, where their names differ."""

from __future__ import annotations

_NAMES = "sbpjax._core.compat.torch_names"
_NO_EFFECT = "sbpjax._core.compat.no_effect"

_MODULES = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm linear "
    "loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling lazy"
)

# PyTorch's modules of one idea whose names sbpjax has in one package
_FLAT = {
    "torch.nn.utils": (
        "clip_grad convert_parameters spectral_norm weight_norm init fusion memory_format",
        ("sbpjax.nn.utils",),
    ),
    "torch.optim": (
        "adam adamw adagrad adadelta adamax asgd lbfgs nadam radam rmsprop rprop sgd sparse_adam _functional "
        "_multi_tensor _adafactor _muon",
        (f"{_NAMES}.optim", "sbpjax.optim"),
    ),
    "torch.autograd": (
        "function grad_mode anomaly_mode gradcheck",
        ("sbpjax.autograd", "sbpjax"),
    ),
    "torch.distributions": (
        "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family exponential "
        "fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal independent inverse_gamma "
        "kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal mixture_same_family "
        "multinomial negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli "
        "relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart",
        ("sbpjax.distributions", f"{_NO_EFFECT}.distributions"),
    ),
    "torch.utils.data": ("dataset sampler datapipes", ("sbpjax.utils.data",)),
    "torch.amp": ("autocast_mode grad_scaler", ("sbpjax.amp",)),
    "torch.cuda.amp": ("autocast_mode grad_scaler", ("sbpjax.cuda.amp",)),
    "torch.nn.parallel": ("data_parallel distributed", ("sbpjax.nn.parallel", "sbpjax.nn")),
    "torch": (
        "functional random storage _tensor return_types torch quasirandom",
        ("sbpjax", f"{_NAMES}.torch_only", f"{_NO_EFFECT}.torch"),
    ),
}

# modules of PyTorch's sharded tensors, by the modules that answer; their other names are absent
_DTENSOR = f"{_NAMES}.dtensor"
_SHARDED = {
    "tensor": "tensor tensor._utils tensor._api tensor.placement_types _tensor _tensor.api _tensor.placement_types",
    "mesh": "device_mesh tensor.device_mesh _tensor.device_mesh",
    "parallel": "tensor.experimental tensor.parallel tensor.parallel.style tensor.parallel.api tensor.parallel.loss",
    "fsdp": "fsdp fsdp.fully_sharded_data_parallel fsdp._fully_shard _composable _composable.fsdp "
    "_composable.fsdp.fully_shard",
    "state_dict": "checkpoint checkpoint.state_dict checkpoint.stateful checkpoint.state_dict_saver "
    "checkpoint.state_dict_loader checkpoint.filesystem",
    "": "checkpoint.hf_storage algorithms algorithms._checkpoint "
    "algorithms._checkpoint.checkpoint_wrapper pipelining fsdp.wrap",
}


# modules that have names of their own first, and the rest from sbpjax under their names
_FIRST = {
    "nn.functional": f"{_NO_EFFECT}.functional",
    "nn.init": f"{_NO_EFFECT}.init",
    "optim": f"{_NAMES}.optim",
    "optim.lr_scheduler": f"{_NAMES}.optim",
    "utils.checkpoint": f"{_NAMES}.checkpoint",
    "testing": f"{_NAMES}.older.testing",
    "distributed": f"{_NAMES}.distributed",
    "serialization": f"{_NAMES}.serialization",
}

# modules that have none but names of their own
_ONLY = {
    f"{_NAMES}.accelerator": "accelerator",
    f"{_NAMES}.version": "version",
    f"{_NAMES}.types": "types nn.common_types",
    f"{_NAMES}.nn_attention": "nn.attention",
    f"{_NAMES}.pytree": "utils._pytree",
    f"{_NAMES}.older.decorators": "utils._contextlib",
    f"{_NAMES}.foreach": "utils._foreach_utils",
    f"{_NAMES}.multiprocessing": "multiprocessing multiprocessing.spawn multiprocessing.queue multiprocessing.pool",
    f"{_NAMES}.library": "library _ops _custom_ops _library _library.infer_schema",
    f"{_NAMES}.masked": "masked",
    f"{_NAMES}.older.futures": "futures",
    f"{_NAMES}.older.benchmark": "utils.benchmark",
    f"{_NAMES}.older.tensorboard": "utils.tensorboard utils.tensorboard.writer",
    f"{_NAMES}.older.scatter_gather": "nn.parallel.scatter_gather nn.parallel.replicate nn.parallel.parallel_apply "
    "cuda.comm",
    f"{_NAMES}.older.autograd_profiler": "autograd.profiler",
    f"{_NO_EFFECT}.config": "__config__",
    f"{_NAMES}.signal": "signal",
    f"{_NAMES}.quasirandom": "quasirandom",
    f"{_NAMES}.distributed": "distributed.distributed_c10d distributed.constants",
    f"{_NAMES}.distributed_nn": "distributed.nn distributed.nn.functional",
    f"{_NAMES}.functional_collectives": "distributed._functional_collectives",
    f"{_NO_EFFECT}.jit": "jit jit._script jit._trace jit._recursive _jit_internal",
    f"{_NO_EFFECT}.fx": "fx fx.proxy fx.node fx.graph_module fx._symbolic_trace",
    f"{_NO_EFFECT}.overrides": "overrides",
    f"{_NO_EFFECT}.compiler": "compiler",
    f"{_NO_EFFECT}.flex_attention": "nn.attention.flex_attention",
    f"{_NO_EFFECT}.no_device": "xpu mps mtia",
    f"{_NO_EFFECT}.cpu": "cpu",
    f"{_NO_EFFECT}.cpp_extension": "utils.cpp_extension",
    f"{_NO_EFFECT}.onnx": "onnx",
    f"{_NO_EFFECT}.ao": "ao ao.quantization ao.nn quantization nn.qat nn.quantized nn.intrinsic nn.quantizable",
    f"{_NO_EFFECT}.distributed_optim": "distributed.optim distributed.algorithms.ddp_comm_hooks",
    f"{_NO_EFFECT}.distributed_elastic": "distributed.elastic distributed.launcher distributed.run",
    f"{_NO_EFFECT}.distributed_rpc": "distributed.rpc distributed.rpc.api",
    f"{_NO_EFFECT}.subclasses": "_subclasses",
    f"{_NO_EFFECT}.prune": "nn.utils.prune",
    f"{_NO_EFFECT}.python_dispatch": "utils._python_dispatch",
    f"{_NO_EFFECT}.testing_internal": "testing._internal",
    f"{_NO_EFFECT}.flop_counter": "utils.flop_counter",
    **{f"{_NO_EFFECT}.{name}": name for name in ("export", "nested")},
}

# modules of libraries that cannot run here, with the reason and the replacement: importing one is an error
_KERNELS = "its kernels are compiled against the runtime of torch, and cannot run in XLA"
_ATTENTION = 'F.scaled_dot_product_attention; in transformers attn_implementation="sdpa"'
REFUSED = dict.fromkeys(("flash_attn_2_cuda", "flash_attn_3._C", "xformers.ops"), (_KERNELS, _ATTENTION)) | {
    "functorch.dim": (_KERNELS, "einops, or torch.einsum"),
    "mamba_ssm": (_KERNELS, "transformers' MambaModel, whose scan is made of tensor ops"),
    "causal_conv1d": (_KERNELS, "F.conv1d with padding on the left"),
    "deepspeed": (_KERNELS, "x.to_global(placement, sbp), optimizer states split by sbpjax.optim (ZeRO)"),
    "e3nn": ("it builds its modules as graphs of torch.fx", "e3nn-jax, through sbpjax.wrap_jax"),
    "pyro": ("it needs all of PyTorch's distributions", "NumPyro, through sbpjax.wrap_jax"),
}

GONE_THROUGH = ("torch.distributions",)  # by libraries, as a dict


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for parent, (names, sources) in _FLAT.items():
        table.update({f"{parent}.{name}": sources for name in names.split()})
    for own, names in _SHARDED.items():
        here = (f"{_DTENSOR}.{own}",) if own else ()
        more = (f"{_DTENSOR}.mesh",) if own == "tensor" else ()
        table.update({f"torch.distributed.{n}": (*here, *more, f"{_NO_EFFECT}.sharded") for n in names.split()})
    for own, names in _ONLY.items():
        table.update({f"torch.{name}": (own,) for name in names.split()})
    for name, own in _FIRST.items():
        table[f"torch.{name}"] = (own, f"sbpjax.{name}")
    for name in _MODULES.split():
        table[f"torch.nn.modules.{name}"] = (f"sbpjax.nn.modules.{name}", "sbpjax.nn")
    table.update(
        {
            "torch": (f"{_NAMES}.torch_only", "sbpjax", f"{_NO_EFFECT}.torch"),
            "torch.torch": (f"{_NAMES}.torch_only", "sbpjax", f"{_NO_EFFECT}.torch"),
            "torch._dynamo": (f"{_NO_EFFECT}.compiler", f"{_NO_EFFECT}.dynamo"),
            "torch._C": (f"{_NO_EFFECT}.C", "sbpjax._C"),
            "torch.jit.annotations": (f"{_NO_EFFECT}.jit", "typing"),
            "torch._C._nn": (f"{_NO_EFFECT}.C_nn", "sbpjax.nn.functional"),
            "torch._tensor_str": (f"{_NO_EFFECT}.tensor_str", "sbpjax"),
            "torch.utils.data.dataloader": (f"{_NAMES}.data", "sbpjax.utils.data"),
            "torch.profiler.profiler": ("sbpjax.profiler",),
            "torch.distributions": ("sbpjax.distributions", f"{_NO_EFFECT}.distributions"),
            "torch.sparse": (f"{_NAMES}.sparse", f"{_NO_EFFECT}.sparse"),
            "torch.autograd": (f"{_NAMES}.types", "sbpjax.autograd"),
            "torch.nn.parallel": ("sbpjax.nn.parallel", f"{_NAMES}.older.scatter_gather"),
            "torch.utils.data._utils": ("sbpjax.utils.data",),
            "torch.utils.data._utils.collate": (
                "sbpjax.data.loading.collate",
                "sbpjax.utils.data",
                f"{_NO_EFFECT}.collate",
            ),
            "torch.serialization": (f"{_NAMES}.serialization", "sbpjax"),
            "torch.cuda": ("sbpjax.cuda", f"{_NO_EFFECT}.cuda"),
            "torch.nn.modules": ("sbpjax.nn", "sbpjax.nn.modules"),
            "torch.hub": ("sbpjax._core.compat.hub",),
            "torch.nn.modules.module": ("sbpjax.nn.modules.module", "sbpjax.nn", f"{_NO_EFFECT}.module_hooks"),
            "torch.nn.modules.utils": ("sbpjax.nn.modules.utils",),
            "torch.nn.parameter": ("sbpjax.nn.lazy", "sbpjax.nn.parameter", "sbpjax.nn"),
            "torch.nn.utils.parametrizations": ("sbpjax.nn.utils.parametrizations", "sbpjax.nn.utils"),
            "torch.nn.utils.stateless": ("sbpjax.nn.utils.stateless", "sbpjax.func"),
            "torch.optim.optimizer": ("sbpjax.optim.optimizer", f"{_NAMES}.optim", "sbpjax.optim"),
            "torch.utils.dlpack": ("sbpjax._core.functions.protocols",),
            "torch.autograd.functional": ("sbpjax.autograd.functional",),
        }
    )
    return table


TABLE = _table()
