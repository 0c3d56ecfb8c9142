"""The alias `oneflow`: its table of modules, and its switch; re-exported by `sbpjax.mock_oneflow`."""

from __future__ import annotations

from .peer import Peer
from .switch import Disable, Enable

PEER = "0.9.0"  # the release whose recorded facts the tests compare with

_NAMES = "sbpjax._core.compat.torch_names"
_NO_EFFECT = "sbpjax._core.compat.no_effect"

# those of its layers that sbpjax has under the same name
_LAYERS = (
    "activation batchnorm batchnorm_fused container conv dropout fake_quantization flatten fold linear loss module "
    "min_max_observer moving_average_min_max_observer normalization padding pixelshuffle pooling rnn sparse upsampling"
)

# OneFlow's modules of one idea whose names sbpjax has in one package, or in a few
_FLAT = {
    "nn.modules": (
        "activation affine_grid all_reduce arange argsort argwhere as_tensor batchnorm batchnorm_fused broadcast_ops "
        "constant container conv dataset distributed_partial_fc_sample dropout einsum empty expand fake_quantization "
        "flatten fold fused_mlp global_cast grid_sample interpolate is_tensor linear linspace logspace loss "
        "masked_select math_ops meshgrid min_max_observer module moving_average_min_max_observer nms nonzero norm "
        "normalization numel padding pixelshuffle pooling reshape rnn roll scatter slice sparse "
        "sparse_softmax_cross_entropy tensordot trigonometric_ops unique upsampling where",
        ("sbpjax.nn", "sbpjax.nn.functional", "sbpjax"),
    ),
    "nn.functional": (
        "functional_batch_norm functional_deform_conv functional_maxpool functional_pad",
        ("sbpjax.nn.functional",),
    ),
    "nn.graph": ("graph graph_block graph_config optimizer proxy util", ("sbpjax.nn.graph", "sbpjax.nn")),
    "nn.optimizer": (
        "adadelta adagrad adam adamw ftrl lamb lbfgs optimizer rmsprop sgd chained_scheduler constant_lr "
        "cosine_annealing_lr cosine_annealing_warm_restarts cosine_decay_lr exponential_lr lambda_lr linear_lr "
        "lr_scheduler multistep_lr polynomial_lr reduce_lr_on_plateau sequential_lr step_lr warmup_lr",
        (
            "sbpjax._core.compat.oneflow_names",
            "sbpjax.optim",
            "sbpjax.optim.lr_scheduler",
        ),
    ),
    "nn.parallel": ("distributed", ("sbpjax._core.compat.oneflow_names", "sbpjax.nn.parallel")),
    "nn.utils": ("clip_grad container convert_parameters parameters_grouping weight_norm", ("sbpjax.nn.utils",)),
    "amp": ("autocast_mode grad_scaler", ("sbpjax.amp",)),
    "cuda.amp": ("autocast_mode", ("sbpjax.cuda.amp",)),
    "autograd": ("autograd autograd_function autograd_mode", ("sbpjax.autograd", "sbpjax")),
    "comm": ("comm_ops", ("sbpjax.comm",)),
    "distributions": ("categorical distribution", ("sbpjax.distributions",)),
    "framework": (
        "check_point_v2 distribute dtype env_util generator tensor tensor_str tensor_tuple_util",
        ("sbpjax",),
    ),
    "profiler": ("events profiler util", ("sbpjax.profiler",)),
    "utils.data": ("dataset sampler", ("sbpjax.utils.data",)),
    "utils.global_view": ("global_mode global_utils to_global to_local", ("sbpjax.utils.global_view",)),
    "utils.tensor": ("from_or_to_torch_tensor", ("sbpjax.utils.tensor",)),
}

TABLE = {
    **{f"oneflow.{room}.{name}": sources for room, (names, sources) in _FLAT.items() for name in names.split()},
    **{
        f"oneflow.nn.modules.{name}": (f"sbpjax.nn.modules.{name}", "sbpjax.nn", "sbpjax.nn.functional", "sbpjax")
        for name in _LAYERS.split()
    },
    **{
        f"oneflow.{name}": (f"{_NAMES}.multiprocessing",)
        for name in "multiprocessing multiprocessing.spawn multiprocessing.queue multiprocessing.pool".split()
    },
    "oneflow.utils.data.dataloader": ("sbpjax.utils.data",),
    "oneflow.utils.data._utils.collate": ("sbpjax.utils.data",),
    "oneflow.utils.data._utils.fetch": ("sbpjax.data.loading.fetcher",),
    "oneflow.nn.init": (f"{_NO_EFFECT}.init", "sbpjax.nn.init"),
    "oneflow.nn.modules": ("sbpjax.nn", "sbpjax.nn.modules"),
    "oneflow.nn.modules.utils": ("sbpjax.nn.modules.utils",),
    "oneflow.nn.parameter": ("sbpjax.nn",),
    "oneflow.nn.qat": ("sbpjax.nn",),
    "oneflow.nn.qat.conv": ("sbpjax.nn",),
    "oneflow.nn.graph.graph_config": ("sbpjax.nn.graph.graph_config",),
    "oneflow.nn.graph.graph_block": ("sbpjax.nn.graph", "sbpjax.graph.module_proxy"),
    "oneflow.nn.graph.proxy": ("sbpjax.nn.graph", "sbpjax.graph.module_proxy"),
    "oneflow.utils.checkpoint": (f"{_NAMES}.checkpoint", "sbpjax.utils.checkpoint"),
    "oneflow._utils": ("sbpjax.utils.data._utils.worker",),
    "oneflow.jit": (f"{_NO_EFFECT}.jit",),
    "oneflow.jit._script": (f"{_NO_EFFECT}.jit",),
    "oneflow.optim": ("sbpjax._core.compat.oneflow_names", "sbpjax.optim"),
    "oneflow.optim.lr_scheduler": ("sbpjax._core.compat.oneflow_names", "sbpjax.optim.lr_scheduler"),
    "oneflow.optim.optimizer": ("sbpjax.optim.optimizer", f"{_NAMES}.optim", "sbpjax.optim"),
    "oneflow.distributed.constants": (f"{_NAMES}.distributed",),
    "oneflow.sysconfig": (f"{_NO_EFFECT}.sysconfig",),
    "oneflow.nn.optimizer": ("sbpjax._core.compat.oneflow_names", "sbpjax.optim"),
    "oneflow.nn.parallel": ("sbpjax._core.compat.oneflow_names", "sbpjax.nn.parallel"),
    "oneflow.nn.common_types": (f"{_NAMES}.types",),
    "oneflow.framework": ("sbpjax",),
    "oneflow.ops": ("sbpjax",),
    "oneflow.ops.array_ops": ("sbpjax",),
    "oneflow.version": ("sbpjax",),
}

peer = Peer("oneflow", TABLE, f"{PEER}+sbpjax")


class enable(Enable):
    """Answer to imports of ``oneflow``; see `Enable` for the options."""

    _peer = peer


class disable(Disable):
    """Stop answering to imports of ``oneflow``: inside a block, or from now on."""

    _peer = peer


def is_enabled() -> bool:
    """Return whether imports of ``oneflow`` resolve here now."""
    return peer.is_enabled
