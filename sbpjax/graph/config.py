"""`GraphConfig`: the options of a graph, under OneFlow's names.

    self.config.set_gradient_accumulation_steps(4)
    self.config.enable_amp(True, dtype=flow.bfloat16)
    self.config.enable_zero(True, stage=2)

There are three kinds of options: those that change the compiled program (a later call compiles anew), those of
optimisations that XLA does on its own, and those of machinery that does not exist here. The last two are accepted,
checked, and listed by ``repr`` with their fate, so that no option is silently without effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sbpjax._core.compiler.compile import LOWERINGS
from sbpjax._core.engines.runtimes import PRECISIONS, Engine
from sbpjax._core.programs.repeated_layers import LEAST_ITERATIONS
from sbpjax._core.runtime.lifecycle import at_stage
from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax._core.tensor.amp.casting import CASTABLE, Casting
from sbpjax._core.tensor.amp.lists import ACCELERATOR, CastPolicy
from sbpjax._core.tensor.handle import dtype as _dtypes
from sbpjax._core.tensor.handle.mode import mode as _mode
from sbpjax._core.tensor.storage.version_counter import changes

from .config_values import check_bool, check_choice, check_integer, option_error
from .planner_config import PlannerConfig

_XLA = "XLA does this on its own"
_ALWAYS = "always on"
_NONE_HERE = "no such machinery here; no effect"

# The fate of the options that choose nothing here.
STATED = {
    "allow_fuse_add_to_output": f"{_XLA}: elementwise chains are fused",
    "allow_fuse_cast_scale": f"{_XLA}: casts and scales are fused",
    "allow_fuse_model_update_ops": f"{_ALWAYS}: the update of all parameters is part of the one program",
    "enable_fused_model_update_cast": f"{_XLA}: the cast of updated weights is fused into the update",
    "enable_multi_tensor_update": f"{_ALWAYS}: all parameters of an optimizer are updated by one program",
    "enable_choose_best_memory_allocation": f"{_XLA}: buffer assignment",
    "enable_compress_memory": f"{_XLA}: buffer assignment shares memory of values that do not live together",
    "enable_straighten_algorithm": f"{_XLA}: the scheduler orders the program for memory and overlap",
    "enable_cudnn_conv_heuristic_search_algo": f"{_XLA}: convolutions are autotuned, see XLA_FLAGS",
    "set_outputs_buffer_size": f"{_NONE_HERE}: results are returned as futures, any number of them",
}

# From this many iterations on, a loop is worth the stacks of its saved values. Programs of one CPU device call one
# function per kind of layer anyway (`_core.programs.outline`), and a loop of 24 layers takes 1.2 times their time.
# Those of several CPU ranks have the collectives of every layer between the calls: the first call of 16 layers takes
# 1.6 times that of 4, and a loop's step 0.88 to 1.05 times that of calls (`benchmarks/results/performance.md`).
_MANY_LAYERS, _MANY_ON_ONE_CPU, _MANY_ON_CPUS = 16, 40, 10

STRAIGHTEN = ("Disable", "SpeedFirst", "MemoryFirst", "OverlapCpuGpu", "DelayShortGpu", "CompressMemory")


@explain_arguments
class GraphConfig(PlannerConfig):
    """The options of one graph, with those of the planner; its methods set them, its attributes read them.

    Attributes:
        training: whether the graph trains: an optimizer was added.
        accumulation_steps: into how many micro-batches a batch is split.
        amp: whether autocasting is on.
        amp_dtype: the dtype it casts to.
        amp_lists: which op runs in which precision.
        zero_stage: 0 (off), 1, 2 or 3.
        zero_min_size: parameters of fewer elements than this are not sharded.
        zero_restore_level: the sharded parameters that are gathered once per step, see `enable_zero`.
        lowering: how planned programs are compiled.
        static_inputs: whether other shapes than the first are an error.
        block_scan: whether equal layers are traced and compiled once.
        max_programs: how many compiled programs are kept.
        clip_grad_norm: ``(bound, p)`` of the norm of all gradients, or None.
        compiler_options: of XLA's compiler, see `set_compiler_options`.
        pipeline_schedule: in which order the stages of a pipeline work, see `set_pipeline`.
    """

    training: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.accumulation_steps = 1
        self.amp = False
        self.amp_dtype = _dtypes.float16
        self.amp_lists = ACCELERATOR
        self.zero_stage = 0
        self.zero_min_size = 1024
        self.zero_restore_level = 1
        self.lowering = "spmd"
        self.static_inputs = False
        self.block_scan: bool | None = None
        self.max_programs = 10
        self.clip_grad_norm: tuple[float, float] | None = None
        self.compiler_options: dict[str, object] = {}
        self.pipeline_schedule: str | tuple = "1f1b"
        self.engine: Engine | None = None
        self._stated: dict[str, Any] = {}

    # Every option, also one that a user sets past the methods, ends the quick way of the next call.
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        changes.note()

    def key(self) -> tuple:
        """Return the options that a compiled program depends on; hashable."""
        casting = self.casting()
        return (
            self.accumulation_steps,
            casting and casting.key,
            self.zero_stage and (self.zero_stage, self.zero_min_size, self.zero_restore_level),
            self.lowering,
            self.block_scan,
            self.clip_grad_norm,
            (self.auto_memory, self.memory_limit_bytes),
            self.pipeline_schedule,
            tuple(sorted(self.compiler_options.items())),
            self.auto(),
            (
                self.auto_trunk,
                self.auto_collector,
                self.auto_compute_ratio,
                self.auto_wait_time,
                self.auto_cost,
            ),
            self.engine,
        )

    # -- options that change the compiled program ------------------------------------------------------------------

    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Split every batch into `value` micro-batches along dim 0, and step once with the mean of their gradients.

        ``build`` sees one micro-batch at a time, in one compiled loop. Outputs come back as of the whole batch:
        concatenated along dim 0, and 0-d ones stacked to shape ``(value,)``.

        A loss that is divided by a count of the inputs (targets that are not ignored, a sum of a mask or of weights) is
        divided by the batch's count over `value`, so that the mean of the losses is the batch's. Where a loss is no
        such mean, the mean of the micro-batches' is taken, with a warning; a sum over rows becomes 1 / `value` of it.

        Args:
            value: how many, at least 1; the size of dim 0 of every input is a multiple of it.
        """
        self.accumulation_steps = check_integer("set_gradient_accumulation_steps", value, 1)

    def set_pipeline(self, schedule: str | Sequence[Sequence[tuple[str, int, int]]] = "1f1b") -> None:
        """Set the order in which the stages of a pipeline work on the micro-batches of a batch.

        A model is a pipeline if its parameters are on several placements; `set_gradient_accumulation_steps` sets the
        number of micro-batches per batch.

        Args:
            schedule: ``"1f1b"`` (a stage holds activations of at most as many micro-batches as there are stages from it
                on), ``"gpipe"`` (all forwards first), ``"interleaved"`` (for models that come to a placement several
                times; otherwise it is 1F1B, and a warning says so), ``"zero_bubble"`` (gradients of weights fill the
                gaps), or per stage its list of (kind, chunk, micro-batch), as `Schedule.rows` gives it.
        """
        if isinstance(schedule, str):
            schedule = check_choice(
                "set_pipeline(schedule=...)", schedule, ("1f1b", "gpipe", "interleaved", "zero_bubble")
            )
        else:
            schedule = tuple(tuple(tuple(entry) for entry in row) for row in schedule)
        self.pipeline_schedule = schedule

    def set_clip_grad_norm(self, max_norm: float | None, norm_type: float = 2.0) -> None:
        """Scale the gradients of all optimizers before the step so that their norm, taken as one, is at most a bound.

        The gradients are those of the whole batch: summed over micro-batches, and unscaled. Groups of parameters with
        a bound of their own (``"clip_grad_max_norm"``) are clipped to that afterwards.

        Args:
            max_norm: the bound, above 0; None for none.
            norm_type: p of the norm; may be infinity.
        """
        requested = f"set_clip_grad_norm({max_norm!r}, {norm_type!r})"
        for value in (norm_type,) if max_norm is None else (max_norm, norm_type):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise option_error(requested, repr(value), "the bound and the p of a norm are numbers above 0",
                             "set_clip_grad_norm(1.0)")  # fmt: skip
        self.clip_grad_norm = None if max_norm is None else (float(max_norm), float(norm_type))

    def enable_amp(self, mode: bool = True, *, dtype=_dtypes.float16, lists: CastPolicy = ACCELERATOR) -> None:
        """Run the ops that gain from it in a lower precision, as under `sbpjax.autocast`; parameters stay as they are.

        Float32 parameters are their own master weights. Those of lower precision get a float32 copy in the state of
        their optimizer, see `Optimizer.use_master_weights`. Gradients are in the dtype of their parameter when they
        are summed over micro-batches.

        Args:
            mode: on or off; off, a call inside a `sbpjax.autocast` block is cast as in that block.
            dtype: ``float16`` (with a loss scaler, see `Graph.set_grad_scaler`), ``bfloat16``, or ``"fp8"`` (or
                ``float8_e4m3fn``): bfloat16, with 8-bit products of linear layers whose dims are multiples of 16.
            lists: which op runs in which precision, the same on every device.
        """
        check_bool("enable_amp", mode)
        dtype = _dtypes.float8_e4m3fn if dtype == "fp8" else dtype
        if dtype not in CASTABLE:
            raise option_error(
                f"enable_amp(dtype={dtype!r})",
                repr(dtype),
                "autocasting goes to float16, bfloat16 or fp8",
                "enable_amp(True, dtype=sbpjax.bfloat16)",
            )
        if not isinstance(lists, CastPolicy):
            rule = "lists are a value of amp.lists: CPU, ACCELERATOR, or a result of changed()"
            fix = 'lists=sbpjax._core.tensor.amp.lists.ACCELERATOR.changed(lower=["softmax"])'
            raise option_error("enable_amp(lists=...)", f"a {type(lists).__name__}", rule, fix)
        self.amp, self.amp_dtype, self.amp_lists = mode, dtype, lists

    def casting(self) -> Casting | None:
        """Return the casting of ``build``: that of `enable_amp`, else of the enclosing `sbpjax.autocast` block."""
        if self.amp:
            return Casting(self.amp_dtype, self.amp_lists, "cuda")
        return None if _mode.autocast is None else _mode.autocast.fresh_copy()

    def enable_zero(
        self, mode: bool = True, *, stage: int = 2, shard_min_size: int = 1024, shard_restore_level: int = 1
    ) -> None:
        """Split tensors of which every data-parallel rank would hold a copy over the data-parallel ranks.

        Args:
            mode: on or off.
            stage: 1 splits optimizer state, 2 gradients too, 3 parameters too.
            shard_min_size: tensors of fewer elements stay whole.
            shard_restore_level: of stage 3; 0 leaves the gathering of parameters to the planner, 1 gathers them per
                use in the forward pass and again in the backward pass, 2 once per step.
        """
        check_bool("enable_zero", mode)
        stage = check_choice("enable_zero(stage=...)", stage, (1, 2, 3))
        shard_min_size = check_integer("enable_zero(shard_min_size=...)", shard_min_size, 1)
        level = check_choice("enable_zero(shard_restore_level=...)", shard_restore_level, (0, 1, 2))
        self.zero_stage = stage if mode else 0
        self.zero_min_size, self.zero_restore_level = shard_min_size, level

    def set_zero_redundancy_optimizer_mode(self, mode: str = "distributed_split") -> None:
        """Do ``enable_zero(True, stage=1)`` for ``"distributed_split"``; an older name of it."""
        check_choice("set_zero_redundancy_optimizer_mode", mode, ("distributed_split", "non_distributed"))
        self.enable_zero(mode == "distributed_split", stage=1)

    def set_lowering(self, lowering: str = "spmd") -> None:
        """Choose how a planned program is compiled.

        Args:
            lowering: ``"spmd"`` (explicit collectives, as planned) or ``"gspmd"`` (sharding constraints, collectives
                left to XLA's partitioner).
        """
        self.lowering = check_choice("set_lowering", lowering, LOWERINGS)

    def set_compiler_options(self, options: Mapping[str, Any]) -> None:
        """Set options of XLA's compiler for this graph's programs.

        They go before those that the graph sets by platform, so that collectives go on while the devices compute; the
        page of graph options lists those.

        Args:
            options: names and values, such as ``{"xla_tpu_enable_async_collective_fusion": False}``; None leaves an
                option to the compiler. The compiler refuses names that it does not know.

        Raises:
            GraphConfigError: no mapping from names.
        """
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            rule, fix = "options are a dict from XLA's names to values", 'set_compiler_options({"xla_…": True})'
            raise option_error(f"set_compiler_options({options!r})", f"a {type(options).__name__}", rule, fix)
        self.compiler_options = dict(options)

    def enable_openvino(
        self, mode: bool = True, *, precision: str = "float32", verify: bool = True, threads: int | None = None
    ) -> None:
        """Run the graph by OpenVINO, on CPUs; its weights become constants of OpenVINO's model.

        For graphs that only compute, on one device. A weight that is written later means a model made anew. OpenVINO is
        in the extra ``openvino``.

        Args:
            mode: on, or off (XLA runs it).
            precision: the type in which OpenVINO may compute, ``"float32"``, ``"bfloat16"`` or ``"float16"``; tensors
                stay as they are. ``"int8"`` keeps matrices of weights in 8 bits, by NNCF (extra ``int8``).
            verify: compare the first result with XLA's.
            threads: how many it uses; None for its own choice.

        Raises:
            GraphConfigError: an option is unknown.
        """
        self._set_engine("openvino", mode, precision, verify, threads)

    def enable_onnxruntime(self, mode: bool = True, *, verify: bool = True, threads: int | None = None) -> None:
        """Run the graph by ONNX Runtime, on CPUs; see `enable_openvino`. It is in the extra ``onnx``."""
        self._set_engine("onnxruntime", mode, "float32", verify, threads)

    @at_stage("pre-alpha")
    def enable_tensorrt(self, mode: bool = True, *, precision: str = "float32", verify: bool = True) -> None:
        """Run the graph by TensorRT, on NVIDIA GPUs; see `enable_openvino`. It needs ONNX Runtime's TensorRT provider.

        Args:
            mode: on, or off (XLA runs it).
            precision: the type in which it may compute, ``"float32"`` or ``"float16"``.
            verify: compare the first result with XLA's.

        Raises:
            GraphConfigError: an option is unknown.
        """
        self._set_engine("tensorrt", mode, precision, verify, None)

    @at_stage("pre-alpha")
    def enable_iree(self, mode: bool = True, *, verify: bool = True) -> None:
        """Run the graph by IREE, on CPUs; see `enable_openvino`. It is in the extra ``iree``, and takes fixed sizes."""
        self._set_engine("iree", mode, "float32", verify, None)

    def enable_constant_weights(self, mode: bool = True) -> None:
        """Compile the graph with its weights as constants: XLA folds norms into convolutions, and packs matrices once.

        For graphs that only compute, on one device. A weight that is written later means a program made anew.
        """
        self._set_engine("xla", mode, "float32", False, None)

    def _set_engine(self, name: str, mode: bool, precision: str, verify: bool, threads: int | None) -> None:
        requested = {"xla": "enable_constant_weights"}.get(name, f"enable_{name}")
        check_choice(f"{requested}(precision=...)", precision, PRECISIONS[name])
        if threads is not None:
            check_integer(f"{requested}(threads=...)", threads, 1)
        if check_bool(requested, mode):
            self.engine = Engine(name, precision, check_bool(f"{requested}(verify=...)", verify), threads)
        elif self.engine is not None and self.engine.name == name:
            self.engine = None

    def set_static_inputs(self, mode: bool = True) -> None:
        """Make it an error to call the graph with other shapes, dtypes, layouts or static values than at first.

        Args:
            mode: on, or off (the graph compiles anew, and logs the reason).
        """
        self.static_inputs = check_bool("set_static_inputs", mode)

    def enable_block_scan(self, mode: bool = True) -> None:
        """Trace and compile equal layers once.

        Args:
            mode: on or off; without a call it is on where the user's loop over the layers is plain.
        """
        self.block_scan = check_bool("enable_block_scan", mode)

    def least_iterations(self, device: str, ranks: int) -> int:
        """Return the least number of equal layers that is compiled as a loop; 0 for never.

        Args:
            device: the kind of the devices.
            ranks: their number.
        """
        many = _MANY_LAYERS if device != "cpu" else _MANY_ON_ONE_CPU if ranks == 1 else _MANY_ON_CPUS
        return {None: many, True: LEAST_ITERATIONS, False: 0}[self.block_scan]

    def set_max_programs(self, value: int = 10) -> None:
        """Keep at most this many compiled programs; the one not used for longest goes first."""
        self.max_programs = check_integer("set_max_programs", value, 1)

    # -- options of things that XLA does, or that are always done --------------------------------------------------

    def allow_fuse_add_to_output(self, mode: bool = True) -> None:
        """Fuse an add into the op before it. XLA fuses elementwise chains on its own."""
        self._state("allow_fuse_add_to_output", check_bool("allow_fuse_add_to_output", mode))

    def allow_fuse_cast_scale(self, mode: bool = True) -> None:
        """Fuse casts and scales. XLA does so on its own."""
        self._state("allow_fuse_cast_scale", check_bool("allow_fuse_cast_scale", mode))

    def allow_fuse_model_update_ops(self, mode: bool = True) -> None:
        """Fuse the ops of an update. The update is part of the one program, and XLA fuses it."""
        self._state("allow_fuse_model_update_ops", check_bool("allow_fuse_model_update_ops", mode))

    def enable_fused_model_update_cast(self, mode: bool = True) -> None:
        """Fuse the cast of updated weights into the update. XLA does so on its own."""
        self._state("enable_fused_model_update_cast", check_bool("enable_fused_model_update_cast", mode))

    def enable_multi_tensor_update(self, mode: bool = True) -> None:
        """Update many parameters at once. Always so: one program updates all."""
        self._state("enable_multi_tensor_update", check_bool("enable_multi_tensor_update", mode))

    def enable_choose_best_memory_allocation(self, mode: bool = True) -> None:
        """Try several memory layouts. XLA's buffer assignment does this on its own."""
        self._state("enable_choose_best_memory_allocation", check_bool("enable_choose_best_memory_allocation", mode))

    def enable_compress_memory(self, mode: bool = True) -> None:
        """Share memory between values that do not live together. XLA's buffer assignment does this on its own."""
        self._state("enable_compress_memory", check_bool("enable_compress_memory", mode))

    def enable_straighten_algorithm(self, mode: str = "MemoryFirst") -> None:
        """Choose the order of a program. XLA's scheduler chooses it."""
        self._state("enable_straighten_algorithm", check_choice("enable_straighten_algorithm", mode, STRAIGHTEN))

    def enable_cudnn_conv_heuristic_search_algo(self, mode: bool = True) -> None:
        """Choose convolution algorithms by a heuristic. XLA autotunes them; ``XLA_FLAGS`` sets the method."""
        self._state(
            "enable_cudnn_conv_heuristic_search_algo", check_bool("enable_cudnn_conv_heuristic_search_algo", mode)
        )

    def set_outputs_buffer_size(self, value: int = 2) -> None:
        """Set how many results may wait to be read. Results are futures here, so any number may."""
        self._state("set_outputs_buffer_size", check_integer("set_outputs_buffer_size", value, 1))

    def _state(self, name: str, value: Any) -> None:
        self._stated[name] = value

    # -- text ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        amp = f"{self.amp_dtype!r}" if self.amp else "off"
        zero = "off"
        if self.zero_stage:
            zero = (
                f"stage {self.zero_stage}, from {self.zero_min_size} elements, restore level {self.zero_restore_level}"
            )
        blocks = {None: "automatic", True: "on", False: "off"}[self.block_scan]
        lines = [
            "GraphConfig(",
            f"  training: {self.training}",
            f"  gradient_accumulation_steps: {self.accumulation_steps}",
            f"  clip_grad_norm: {self.clip_grad_norm[0] if self.clip_grad_norm else 'off'}",
            f"  amp: {amp}",
            f"  zero: {zero}",
            f"  lowering: {self.lowering}",
            *([f"  compiler_options: {self.compiler_options}"] if self.compiler_options else []),
            *([f"  engine: {self.engine}"] if self.engine else []),
            f"  static_inputs: {self.static_inputs}",
            f"  block_scan: {blocks}",
            f"  max_programs: {self.max_programs}",
            f"  auto_parallel: {self._auto_text()}",
            f"  auto_memory: {self._memory_text()}",
        ]
        for name, value in self._stated.items():
            lines.append(f"  {name}({value!r}): {STATED.get(name, _XLA)}")
        return "\n".join([*lines, ")"])
