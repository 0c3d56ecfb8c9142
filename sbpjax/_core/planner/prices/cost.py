"""Cost model of plans: a roofline for compute, alpha-beta for communication.

An equation takes ``max(flops / peak, bytes / memory bandwidth)`` of its share; a collective takes ``alpha + bytes /
bandwidth``. On an H100 a float32 ``(8192, 1024) · (1024, 4096)`` product is 68.7 Gflop or 139 µs, and the all-reduce of
its 134 MB result over eight ranks moves 235 MB or 522 µs: so it pays to keep the result split.

Every preset counts the launch of a collective, which in small programs outweighs every byte; collectives that the
compiler combines are launched once (`_core.planner.prices.launches`). The planner's default, for CPU devices in place
of accelerators, counts only 0.005 µs per collective: that is bytes where computing is equally divided, with a
preference for one all-reduce over a reduce-scatter and an all-gather where the work between them is small; and a large
computation is never done everywhere to save a few bytes. `CostModel.with_latency` gives a model with another latency.

On a placement each mesh axis may have a *link* of its own (`_core.planner.prices.links`). With ``hides`` the latency of
a conversion counts only as far as other work does not cover it (`_core.planner.prices.slack`), and with
``memory_us_per_byte`` the peak memory of a device has a price.

Sources of the presets (peak without sparsity; ``interconnect_bytes_per_s`` is the rate at which one device receives
from its group):

* a100: NVIDIA A100 80GB SXM data sheet: 156 TF (TF32), 312 TF (BF16), 2,039 GB/s, NVLink 300 GB/s each way.
* h100: NVIDIA H100 SXM data sheet: 494.5 TF (TF32), 989 TF (BF16), 3,350 GB/s, NVLink 450 GB/s each way.
* h200: NVIDIA H200 SXM data sheet: as h100, with 4,800 GB/s and 141 GB.
* v4, v5e, v5p, v6e: Google Cloud TPU system architecture pages: 275, 197, 459, 918 TF (BF16); 1,200, 819, 2,765, 1,640
  GB/s; inter-chip links 2,400, 1,600, 4,800, 3,584 Gbit/s per chip. A float32 product is one BF16 pass at JAX's
  default precision, three at ``HIGH`` and six at ``HIGHEST``.
* between hosts: NVIDIA DGX A100 and H100 data sheets: one 200 or 400 Gbit/s adapter per GPU.
* launching on GPUs: NCCL's own tuning model (`src/graph/tuning.cc`), protocol LL, ring: 3.6 µs, 0.47 per step over
  NVLink and 2.7 per step between hosts. An all-reduce of eight GPUs has 14 steps: 10.2 µs; of four hosts 6: 19.8.
* launching on TPUs: Austin et al., "How to Scale Your Model" (2025): 1 µs per hop between chips; a ring of four chips
  that sends both ways has two hops.
* combining: XLA's defaults, `xla_gpu_{all_reduce,all_gather,reduce_scatter}_combine_threshold_bytes`; by their
  compiled programs XLA:CPU and libtpu 0.0.42 combine all-reduces alone.
* cpu: eight virtual devices that share two cores: orders of magnitude only, from runs of XLA:CPU.
* float8: H100 and H200 data sheets, 1,979 TF; no others of these chips have it.
* between slices of TPUs (`slices`): Cloud TPU pages of v5e and v6e, 6.4 and 25.6 Tbit/s of data-centre network for the
  256 chips of a pod; v5p and v4 50 Gbit/s per chip (Austin et al.); 50 µs from host to host.
* what programs reach of these peaks: `Efficiency`.
* oneflow: the constants of OneFlow's auto parallelism (`oneflow/core/auto_parallel`, `job_conf.proto`,
  `sbp_infer_util.cpp`). Its unit is a byte moved by any rank of a group, so a "µs" here is that: 16,500 per transfer
  (its wait time), 0.05 per flop of a product or element that another op reads or writes (its cost ratio).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

from sbpjax._core.ops.attention import primitive as attention_primitive
from sbpjax._core.ops.conv import primitive as conv_primitive
from sbpjax._core.ops.grouped_matmul import primitive as grouped_matmul_primitive
from sbpjax._core.ops.losses import cross_entropy_primitive
from sbpjax._core.programs.primitives import (
    ARG_REDUCTIONS,
    ATTENTION,
    CONTROL,
    CUMULATIVE,
    GROUPED,
    LOSSES,
    PRODUCTS,
    REDUCTIONS,
    ROW_UPDATES,
    SCATTERS,
    WINDOWS,
)
from sbpjax.errors import SbpError
from sbpjax.sbp.conversion_steps import Step


@dataclass(frozen=True)
class Link:
    """The link between the ranks of one mesh axis.

    Attributes:
        alpha_us: the latency of one collective.
        bytes_per_s: the rate at which one device receives in it.
        as_all_reduce: kinds of `Step` that the compiler writes as an all-reduce: of the whole, of which a rank keeps
            its part, and of zeros around the own part.
    """

    alpha_us: float
    bytes_per_s: float
    as_all_reduce: tuple[str, ...] = ()


@dataclass(frozen=True)
class Efficiency:
    """The shares of a chip's peaks that programs reach: one per kind of operation, for models of whole training steps.

    Sources. GPUs: products 0.50 of the peak, with which the model gives this project's own training step of Llama 1.24B
    on an H100 (`benchmarks/results/gpu.md`, 163.5 ms); a product alone reaches 0.80 in bfloat16 and 0.71 in float8
    (Bekman, "Machine Learning Engineering", maximum achievable matmul flop/s), hence 0.50 · 0.71 / 0.80 for float8;
    attention 0.45, between FlashAttention-2 (0.35) and cuDNN's kernel (0.56, same file); links 0.80 by the bus
    bandwidth of nccl-tests on eight H100 (360 of 450 GB/s). TPUs: Austin et al. give 90 of 100 GB/s per link. Of their
    products, attention and data-centre network there is no published measurement by single operation: 0.85, 0.35 and
    0.5 are round numbers, chosen once for all rows of `benchmarks/results/published.md`.

    Attributes:
        products: of matrix products in 16 bits.
        products_f8: of those in float8.
        attention: of attention kernels.
        memory: of HBM bandwidth, by pointwise operations and the optimizer.
        links: of the links inside a slice or between GPUs.
        slices: of the network between slices, whose transfers go through memory of the hosts.
        hidden: the share of a tensor-parallel collective that runs beside its product, if it is asynchronous.
        unaligned: the factor on products of 16-bit matrices whose rows are not multiples of 16 bytes: loads of 2 bytes
            instead of 16 on GPUs; TPU compilers pad.
    """

    products: float = 0.50
    products_f8: float = 0.44
    attention: float = 0.45
    memory: float = 0.80
    links: float = 0.80
    slices: float = 1.0
    hidden: float = 0.5
    unaligned: float = 0.125


GPU_EFFICIENCY = Efficiency()
TPU_EFFICIENCY = Efficiency(0.85, 0.85, 0.35, 0.80, 0.90, 0.5, 0.9, 1.0)


@dataclass(frozen=True)
class CostModel:
    """The speeds of one device and its links.

    Attributes:
        name: the preset's name.
        flops_f32: float32 products per second, in flop/s.
        flops_bf16: the same for 16-bit floats.
        memory_bytes_per_s: bandwidth of the device's memory.
        memory_bytes: its size.
        interconnect_bytes_per_s: the rate at which one device receives in a collective.
        alpha_us: the latency of one collective.
        combines: kinds of `Step` of which the compiler makes one collective, where none waits for another.
        combined_bytes: the most bytes of one such collective.
        hosts: the link of one device to other hosts, None if there is no other way than ``interconnect_bytes_per_s``.
        compute_ratio: the factor on compute time.
        fused: the share of its result that a pointwise equation moves; the rest stays in the kernel it is fused into.
        links: the link of every mesh axis, outer first; empty if all are alike.
        shares: whether a conversion that several readers want is paid once.
        hides: whether latency that other work covers costs nothing.
        memory_us_per_byte: the price of a byte of one device's peak memory.
        is_summed: whether bytes are counted over all ranks of a group, not per rank.
        tiles: whether memory is read in tiles, so that equations are priced by their blocks
            (`_core.planner.prices.local_work`), collectives by their HBM traffic too, and products take several passes
            only where they request more than the default precision.
        flops_f8: float8 products per second; 0 without units for them.
        torus: the number of dims of a TPU's torus; 0 for GPUs.
        slices: the share of one device in the network between slices; None if there are no slices.
        efficiency: the shares of these peaks that training steps reach. Plans of programs count without it.
    """

    name: str
    flops_f32: float
    flops_bf16: float
    memory_bytes_per_s: float
    memory_bytes: float
    interconnect_bytes_per_s: float
    alpha_us: float = 0.005
    combines: tuple[str, ...] = ()
    combined_bytes: float = 30 * 2.0**20
    hosts: Link | None = None
    compute_ratio: float = 1.0
    fused: float = 0.1
    links: tuple[Link, ...] = ()
    shares: bool = True
    hides: bool = False
    memory_us_per_byte: float = 0.0
    is_summed: bool = False
    tiles: bool = False
    flops_f8: float = 0.0
    torus: int = 0
    slices: Link | None = None
    efficiency: Efficiency = GPU_EFFICIENCY

    @property
    def title(self) -> str:
        """The name, with the latency if it is not that of the preset: ``"h100 with 0.005 µs latency"``."""
        preset = PRESETS.get(self.name)
        is_own = preset is not None and preset.alpha_us != self.alpha_us
        return f"{self.name} with {self.alpha_us:g} µs latency" if is_own else self.name

    def with_latency(self, alpha_us: float) -> CostModel:
        """Return this model with another latency of a collective, on every link."""
        links = tuple(dataclasses.replace(link, alpha_us=alpha_us) for link in self.links)
        return dataclasses.replace(self, alpha_us=alpha_us, links=links)

    def on(self, axes: tuple[int, ...]) -> CostModel:
        """Return the model of some of the mesh axes, which are then numbered from 0."""
        if not self.links:
            return self
        return dataclasses.replace(self, links=tuple(self.links[a] for a in axes))

    def link(self, axis: int | None = None) -> Link:
        """Return the link of a mesh axis; without one, the slowest."""
        if not self.links:
            return Link(self.alpha_us, self.interconnect_bytes_per_s)
        return min(self.links, key=lambda link: link.bytes_per_s) if axis is None else self.links[axis]

    def interconnect_us(self, bytes: float, axis: int | None = None) -> float:
        """Return the time of one collective that brings ``bytes`` to each device."""
        # A conversion that moves nothing starts no collective, so it has no latency either.
        if not bytes:
            return 0.0
        if not self.links:
            return self.alpha_us + bytes / self.interconnect_bytes_per_s * 1e6
        link = self.link(axis)
        return link.alpha_us + bytes / link.bytes_per_s * 1e6

    def latency_us(self, steps: tuple[Step, ...]) -> float:
        """Return the latency part of a conversion's time."""
        return sum(self.link(s.axis).alpha_us for s in steps if s.bytes)

    def is_combined(self, step: Step) -> bool:
        """Return whether the compiler combines a step with others of its kind that do not wait for it."""
        return 0 < step.bytes < self.combined_bytes and step.kind in self.combines

    def share_us(self, step: Step) -> float:
        """Return a step's share, by its bytes, of the latency of the collectives in which it goes with others."""
        return self.link(step.axis).alpha_us * (step.bytes / self.combined_bytes if self.is_combined(step) else 1.0)

    def memory_us(self, bytes: float) -> float:
        """Return the time to read or write ``bytes`` once."""
        return bytes / self.memory_bytes_per_s * 1e6

    def steps_us(self, steps: tuple[Step, ...], block_bytes: float) -> float:
        """Return the time of a conversion: its collectives, and one pass over memory for each local step."""
        local = sum(self.memory_us(block_bytes) for s in steps if not s.bytes)
        traffic = sum(self._traffic_bytes(s) for s in steps if s.kind != "slice") if self.tiles else 0.0
        return local + self.collectives_us(steps) + self.memory_us(traffic)

    def collectives_us(self, steps: tuple[Step, ...]) -> float:
        """Return the time of a conversion on the interconnect."""
        return sum(self.interconnect_us(s.bytes * (1 + self._is_all_reduce(s)), s.axis) for s in steps)

    def _is_all_reduce(self, step: Step) -> bool:
        return step.kind in self.link(step.axis).as_all_reduce

    def _traffic_bytes(self, step: Step) -> float:
        """Return the bytes of memory that a collective reads and writes on one device."""
        # A gather that becomes an all-reduce writes zeros first; of a sum that does, readers read their part.
        moved = step.bytes / max(step.block, 1)
        if step.kind == "all_to_all":  # ``bytes`` are all of the own part but a rank's share
            return 2.0 * moved * step.held
        if step.kind == "psum" or step.kind == "psum_scatter" and self._is_all_reduce(step):
            return 2.0 * step.held
        return (1.0 - moved + (3.0 if self._is_all_reduce(step) else 1.0)) * step.held

    def equation_us(self, eqn) -> float:
        """Return the time of one equation on one device that does all of it."""
        return self.compute_ratio * work_us(self, eqn)


def _gpu(*speeds, hosts: Link, flops_f8: float = 0.0) -> CostModel:
    combines = ("psum", "psum_scatter", "all_gather")
    return CostModel(*speeds, alpha_us=10.0, combines=combines, hosts=hosts, flops_f8=flops_f8)


def _tpu(*speeds, torus: int, slices: float) -> CostModel:
    network = Link(50.0, slices)
    return CostModel(
        *speeds, alpha_us=2.0, combines=("psum",), tiles=True, torus=torus, slices=network, efficiency=TPU_EFFICIENCY
    )


PRESETS = {
    m.name: m
    for m in (
        CostModel("cpu", 1.2e10, 1.2e10, 2e9, 8e9, 1e9, 100.0, ("psum",)),
        _gpu("a100", 156e12, 312e12, 2.039e12, 80e9, 300e9, hosts=Link(18.0, 25e9)),
        _gpu("h100", 494.5e12, 989e12, 3.35e12, 80e9, 450e9, hosts=Link(18.0, 50e9), flops_f8=1979e12),
        _gpu("h200", 494.5e12, 989e12, 4.8e12, 141e9, 450e9, hosts=Link(18.0, 50e9), flops_f8=1979e12),
        _tpu("v4", 275e12, 275e12, 1.2e12, 32e9, 300e9, torus=3, slices=6.25e9),
        _tpu("v5e", 197e12, 197e12, 0.819e12, 16e9, 200e9, torus=2, slices=3.125e9),
        _tpu("v5p", 459e12, 459e12, 2.765e12, 95e9, 600e9, torus=3, slices=6.25e9),
        _tpu("v6e", 918e12, 918e12, 1.64e12, 32e9, 448e9, torus=2, slices=12.5e9),
        CostModel("oneflow", 1e6, 1e6, 4e6, 80e9, 1e6, 1.65e4, compute_ratio=0.05, fused=2.0, is_summed=True),
    )
}

# Also for CPU devices, which simulate the accelerators that a program is written for: plans made in tests are those of
# the job, but that they are a fraction of its size, so that bytes decide and not launches.
DEFAULT = dataclasses.replace(PRESETS["h100"], alpha_us=0.005, combines=())


def _nbytes(variable) -> int:
    aval = variable.aval
    return math.prod(getattr(aval, "shape", ())) * getattr(getattr(aval, "dtype", None), "itemsize", 4)


def flops(eqn) -> float:
    """Return the multiply-adds of an equation, counted twice each; 0 for memory-bound equations."""
    name = eqn.primitive.name
    if name == "dot_general":
        (contract, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * math.prod(shape[d] for d in contract)
    if name == "conv_general_dilated":
        kernel = eqn.invars[1].aval.shape
        features = kernel[eqn.params["dimension_numbers"].rhs_spec[0]]
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * math.prod(kernel) / max(features, 1)
    if name in LOSSES:
        return cross_entropy_primitive.flops(eqn)
    if name == "convolution":
        return conv_primitive.flops(eqn)
    if name in GROUPED:
        return grouped_matmul_primitive.flops(eqn)
    return attention_primitive.flops(eqn) if name in ATTENTION else 0.0


# A pointwise equation is mostly fused with its neighbours: a chain writes its result once, often into a product. So it
# moves only the share `CostModel.fused` of its result. A cast is priced as the read that it mostly is: as cheap as the
# rest, norms that begin with one are worth doing on every rank for the gather that it saves, and layers then hold their
# inputs whole (a GPT of 64.7B parameters in checkpointed layers on 64 chips: two thirds more memory).
_CAST = "convert_element_type"
READS = (
    PRODUCTS
    | SCATTERS
    | REDUCTIONS
    | ARG_REDUCTIONS
    | CUMULATIVE
    | WINDOWS
    | ATTENTION
    | LOSSES
    | GROUPED
    | {"gather", "sort", "reduce"}
)


def products_us(model: CostModel, eqn) -> float:
    """Return the time of an equation's products at the peak of their dtype and precision; 0 if it has none."""
    count = flops(eqn)
    if not count:
        return 0.0
    # By the result's dtype: a bfloat16 product with a float32 result is priced as float32. Losses are float32 for every
    # input dtype.
    typed = eqn.invars[0] if eqn.primitive.name in LOSSES else eqn.outvars[0]
    peak = model.flops_bf16 if str(typed.aval.dtype) in _HALF else model.flops_f32
    return count * (_passes(eqn) if model.tiles else 1) / peak * 1e6


def _passes(eqn) -> int:
    precision = eqn.params.get("precision")
    requested = precision if isinstance(precision, tuple) else (precision,)
    return max(_PASSES.get(getattr(p, "name", str(p)), 1) for p in requested)


_PASSES = {"HIGH": 3, "HIGHEST": 6, "BF16_BF16_F32_X3": 3, "BF16_BF16_F32_X6": 6}


def work_us(model: CostModel, eqn) -> float:
    """Return the roofline time of an equation; of a loop, the time of its body times its length."""
    params = eqn.params
    name = eqn.primitive.name
    if name == "to_sbp":  # a mark: its conversion is charged separately
        return 0.0
    if name == "scan":
        return params["length"] * _body_us(model, params["jaxpr"])
    if name == "while":
        return _body_us(model, params["body_jaxpr"])
    if name == "cond":
        # The branch taken is not known; the most expensive one is an upper bound.
        return max(_body_us(model, b) for b in params["branches"])
    moved = sum(_nbytes(v) for v in eqn.outvars)
    if name in ROW_UPDATES:  # the named rows of every table, read and written
        moved = 2 * len(eqn.outvars) * _nbytes(eqn.invars[1])
    elif name in READS or name == _CAST:
        moved += sum(_nbytes(v) for v in eqn.invars)
    else:
        moved *= model.fused
    return max(products_us(model, eqn), model.memory_us(moved)) if eqn.outvars else 0.0


_HALF = ("bfloat16", "float16")


# Models are frozen and hashable for this: a scan's body is priced once per model, not per strategy.
@functools.lru_cache(maxsize=4096)
def _body_us(model: CostModel, closed) -> float:
    total = 0.0
    for eqn in closed.jaxpr.eqns:
        inner = next((p for p in eqn.params.values() if hasattr(p, "jaxpr") and hasattr(p, "consts")), None)
        if inner is not None and eqn.primitive.name not in CONTROL:
            total += _body_us(model, inner)
        else:
            total += work_us(model, eqn)
    return total


def preset(name: str) -> CostModel:
    """Return a preset by name.

    Raises:
        SbpError: there is no such preset.
    """
    if name not in PRESETS:
        raise SbpError(f"cost model {name!r}", repr(name), f"the presets are {sorted(PRESETS)}", 'its name: "h100"')
    return PRESETS[name]
