"""Step time of a transformer under a layout on a machine, as a sum of named costs.

    time = (micro-batches + (stages - 1) / virtual) · time of the slowest stage + what a step does once

A stage's time per micro-batch is that of its products, attention and pointwise operations, each by the peak of its kind
and one efficiency (`_core.planner.prices.cost.Efficiency`), and of collectives as far as they are exposed:

    tensor      gathers and reduce-scatters around products: exposed, but for the share that runs beside its product
    fsdp        gathers of weights, reduce-scatters of gradients: beside the layers, exposed beyond their time
    context     keys and values of other ranks: beside attention, exposed beyond its time
    expert      exchanges of tokens: exposed
    pipeline    transfers between stages: exposed
    data        reduction of gradients: beside the last micro-batch's backward, exposed beyond it; over context, too,
                whose ranks share parameters and see other tokens
    slices      the same between slices, of the parts that a slice's ranks hold: exposed, a collective per parameter

Every cost is that of the slowest stage; costs of other stages hide behind it. The bubble is the time that it waits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sbpjax._core.planner.prices.cost import Link

from .layout import RECOMPUTE, Layout
from .machine import Machine
from .transformer import Transformer

_TENSORS_PER_BLOCK = 9  # q, k, v, out, gate, up, down and two norms, whose gradients are reduced between slices
_LAUNCH_US = 4.0  # a kernel's launch from Python or a CUDA stream; hidden while the device is behind
_KERNELS = {True: 30, False: 90}  # of a block's forward, fused or not


@functools.lru_cache(maxsize=1024)
def _links(machine: Machine, sizes: tuple[tuple[str, int], ...]) -> dict[str, Link]:
    return machine.links(dict(sizes))


@dataclass(frozen=True)
class Cost:
    """A part of the step time.

    Attributes:
        name: the operation.
        kind: ``compute``, ``memory``, ``communication``, ``bubble`` or ``launch``.
        seconds: that it adds to a step.
        bytes: that one chip receives for it; of ``memory`` those it reads and writes.
        hidden: seconds of a step in which it runs beside compute.
    """

    name: str
    kind: str
    seconds: float
    bytes: float = 0.0
    hidden: float = 0.0


@dataclass(frozen=True)
class Step:
    """The model of one training step.

    Attributes:
        model: the sizes.
        layout: how it is divided.
        machine: where it runs.
        length: tokens of a sequence.
        sequences: of a step, all ranks together.
        links: of every axis above one, from the machine.
    """

    model: Transformer
    layout: Layout
    machine: Machine
    length: int
    sequences: int
    links: dict[str, Link] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.links:
            object.__setattr__(self, "links", _links(self.machine, tuple(self.layout.sizes().items())))

    # --- sizes ---------------------------------------------------------------------------------------------------

    @cached_property
    def micro_batches(self) -> int:
        """Micro-batches of a step."""
        return self.layout.micro_batches(self.sequences)

    @cached_property
    def group_tokens(self) -> float:
        """Tokens of a micro-batch that the ranks of one tensor axis compute together."""
        return self.layout.micro_batch * self.length / self.layout.context

    @cached_property
    def stage_layers(self) -> tuple[int, int]:
        """Layers of a stage without the vocabulary's products, and of the last stage, the split that is fastest."""
        layers, stages = self.model.layers, self.layout.pipeline
        if stages == 1:
            return 0, layers
        vocab = self._vocab_seconds / max(self._block_seconds, 1e-12)
        # Level where all stages take equally long; rounding either way may be better.
        level = (layers + vocab) / stages - vocab
        tries = {max(0, min(layers // stages, int(level) + d)) for d in (0, 1)}
        splits = [(-(-(layers - last) // (stages - 1)), last) for last in tries]
        return min(splits, key=lambda s: (max(s[0], s[1] + vocab), s[0]))

    @cached_property
    def slowest(self) -> tuple[int, bool]:
        """Layers of the slowest stage, and whether it computes the vocabulary's products."""
        inner, last = self.stage_layers
        vocab = self._vocab_seconds / max(self._block_seconds, 1e-12)
        return (inner, False) if inner > last + vocab else (last, True)

    @cached_property
    def dense_parameters(self) -> float:
        """Return the parameters of one block on one chip, experts excepted, before division over fsdp."""
        mlp = 0 if self.model.experts else self.model.mlp_parameters
        return (self.model.attention_parameters + mlp) / self.layout.tensor

    @cached_property
    def expert_parameters(self) -> float:
        """Return the parameters of one block's experts on one chip, before division over fsdp."""
        return self.model.experts * self.model.mlp_parameters / (self.layout.tensor * self.layout.expert)

    @cached_property
    def vocab_parameters(self) -> float:
        """Return the parameters of one table of the vocabulary on one chip, before division over fsdp."""
        return self.model.vocab_parameters / self.layout.tensor

    @cached_property
    def stage_parameters(self) -> float:
        """Return the parameters of the largest stage on one chip, before division over fsdp."""
        layers = max(self.stage_layers) if self.layout.pipeline > 1 else self.model.layers
        tables = 1 if self.layout.pipeline > 1 or self.model.tied else 2
        return layers * (self.dense_parameters + self.expert_parameters) + tables * self.vocab_parameters

    # --- compute -------------------------------------------------------------------------------------------------

    def _share(self, name: str) -> float:
        return RECOMPUTE[self.layout.recompute].get(name, 0.0)

    @cached_property
    def product_work(self) -> float:
        """Return the passes over a block's products: 3 without recomputation, with the forward's share that is."""
        m, total = self.model, self.model.attention_parameters + self.model.used_mlps * self.model.mlp_parameters
        again = (
            self._share("query") * m.width * m.query_width
            + (self._share("key") + self._share("value")) * m.width * m.kv_width
            + self._share("out") * m.width * m.query_width
            + self._share("up") * 2 * m.width * m.hidden * m.used_mlps
        )
        return 3.0 + again / total

    @cached_property
    def _products(self) -> float:
        chip, e = self.machine.chip, self.machine.chip.efficiency
        is_f8 = self.layout.precision == "float8" and chip.flops_f8 > 0
        peak = chip.flops_f8 * e.products_f8 if is_f8 else chip.flops_bf16 * e.products
        used = self.model.attention_parameters + self.model.used_mlps * self.model.mlp_parameters
        tokens = self.group_tokens / self.layout.tensor
        seconds = 2.0 * tokens * used * self.product_work / peak
        # Few tokens: reading the weights takes longer than multiplying. All experts of a chip are read.
        read = self.product_work * 2.0 * (self.dense_parameters + self.expert_parameters)
        return max(seconds, self._memory(read))

    @cached_property
    def _attention(self) -> float:
        chip = self.machine.chip
        flops = self.model.attention_flops(self.length) / self.model.layers / 3.0  # of a forward, per token
        passes = 1.0 + 2.5 + self._share("attention")  # the backward computes the scores again in its kernel
        tokens = self.group_tokens / self.layout.tensor
        return flops * passes * tokens / (chip.flops_bf16 * chip.efficiency.attention)

    @cached_property
    def pointwise_bytes(self) -> float:
        """Return the bytes per token that pointwise operations of a block read and write, all passes."""
        m = self.model
        hidden = m.hidden * m.used_mlps
        # Norms, residual sums, rotations, the gate: reads and writes in 2 bytes, the backward twice the forward.
        forward = 20.0 * m.width + 4.0 * (m.query_width + m.kv_width) + 6.0 * hidden
        if m.experts:
            forward += 8.0 * m.active * m.width  # tokens to their experts' order, and back
        total = forward * (3.0 + self._share("pointwise")) * (1.0 if self.layout.fuses else 2.0)
        if self.layout.precision == "float8":
            # The largest magnitude, and the cast: of each product's input, and of its result's gradient.
            total += 12.0 * (2 * m.width + m.query_width + hidden)
        return total

    @cached_property
    def _pointwise(self) -> float:
        return self._memory(self.pointwise_bytes * self.group_tokens / self.layout.tensor)

    def _memory(self, count: float) -> float:
        chip = self.machine.chip
        return count / (chip.memory_bytes_per_s * chip.efficiency.memory)

    @cached_property
    def _block_seconds(self) -> float:
        return self._products + self._attention + self._pointwise

    @cached_property
    def _vocab_products(self) -> float:
        chip, e = self.machine.chip, self.machine.chip.efficiency
        columns = -(-self.model.vocab // self.layout.tensor)
        aligned = 1.0 if columns % 8 == 0 else e.unaligned
        tokens = self.group_tokens / self.layout.tensor
        return 6.0 * tokens * self.model.vocab_parameters / (chip.flops_bf16 * e.products * aligned)

    @cached_property
    def _loss(self) -> float:
        # Unfused: to float32, maximum, exponential, sum, gradient, back to 16 bits.
        each = 14.0 if self.layout.fuses_loss else 36.0
        return self._memory(each * self.model.vocab * self.group_tokens / self.layout.tensor)

    @cached_property
    def _vocab_seconds(self) -> float:
        return self._vocab_products + self._loss

    # --- communication -------------------------------------------------------------------------------------------

    def _collective(self, axis: str, whole_bytes: float, count: float = 1.0) -> tuple[float, float]:
        """Return the seconds of ``count`` gathers or reduce-scatters, and the bytes that one chip receives."""
        n = getattr(self.layout, axis)
        if n == 1 or not count:
            return 0.0, 0.0
        link, received = self.links[axis], whole_bytes * (n - 1) / n
        return count * (link.alpha_us * 1e-6 + received / link.bytes_per_s), count * received

    def _tensor(self) -> tuple[float, float, float]:
        again = 0.0 if self.layout.keeps_gathered else 2.0
        count = 8.0 + again + (1.0 if self.layout.recompute == "full" else 0.0)
        seconds, received = self._collective("tensor", 2.0 * self.group_tokens * self.model.width, count)
        hidden = self.layout.overlaps * self.machine.chip.efficiency.hidden * min(seconds, self._products)
        return seconds - hidden, received, hidden

    def _context(self) -> tuple[float, float, float]:
        # Forward: keys and values. Backward: they again, and their gradients.
        n = self.layout.context
        whole = 4.0 * self.group_tokens * n * self.model.kv_width / self.layout.tensor
        seconds, received = self._collective("context", whole, 3.0 + self._share("attention"))
        exposed = min(seconds, max(0.0, seconds - self._attention) + seconds / n)
        return exposed, received, seconds - exposed

    def _expert(self) -> tuple[float, float, float]:
        each = 2.0 * self.group_tokens * self.model.used_mlps * self.model.width / self.layout.tensor
        return *self._collective("expert", each, 4.0 + 2.0 * self._share("up")), 0.0

    def _fsdp(self, layers: int, with_vocab: bool, compute: float) -> tuple[float, float, float]:
        """Return the exposed seconds, bytes and hidden seconds of gathers and reduce-scatters of a pass over layers."""
        each = self.dense_parameters + self.expert_parameters
        tables = (1 if self.model.tied else 2) * self.vocab_parameters * with_vocab
        gather, received = self._collective("fsdp", 2.0 * each, 2.0 * layers)
        reduce, more = self._collective("fsdp", self.layout.reduce_bytes * each, layers)
        ends, last = self._collective("fsdp", (4.0 + self.layout.reduce_bytes) * tables, 1.0 if tables else 0.0)
        first = gather / (2 * layers) if layers else 0.0
        # The first gather and the last reduction have nothing beside them.
        whole = gather + reduce + ends
        exposed = min(whole, max(0.0, whole - compute) + first + (reduce / layers if layers else 0.0))
        return exposed, received + more + last, whole - exposed

    def costs(self) -> list[Cost]:
        """Return the costs of a step, whose seconds add up to its time."""
        layers, with_vocab = self.slowest
        m = self.micro_batches
        found: list[Cost] = []

        def add(
            name: str, kind: str, seconds: float, received: float = 0.0, hidden: float = 0.0, times: float = m
        ) -> None:
            if seconds > 0:
                found.append(Cost(name, kind, seconds * times, received * times, hidden * times))

        add("matmuls", "compute", layers * self._products)
        add("attention", "compute", layers * self._attention)
        add("pointwise operations", "memory", layers * self._pointwise,
            layers * self.pointwise_bytes * self.group_tokens / self.layout.tensor)  # fmt: skip
        if with_vocab:
            add("matmuls of the vocabulary", "compute", self._vocab_products)
            add("loss", "memory", self._loss)
        compute = layers * self._block_seconds + with_vocab * self._vocab_seconds
        for name, (seconds, received, hidden) in (
            ("tensor: gathers and reduce-scatters", self._tensor()),
            ("context: keys and values", self._context()),
            ("expert: exchanges of tokens", self._expert()),
        ):
            add(name, "communication", layers * seconds, layers * received, layers * hidden)
        if self.layout.pipeline == 1:
            add("fsdp: gathers and reduce-scatters", "communication", *self._fsdp(layers, with_vocab, compute))
        else:  # gathered once for all micro-batches, reduced after the last
            once = compute * min(1, m)
            add("fsdp: gathers and reduce-scatters", "communication", *self._fsdp(layers, with_vocab, once), times=1.0)
            add("pipeline: transfers between stages", "communication", *self._transfer())
        found += self._bubble(sum(c.seconds for c in found), compute)
        found += self._once(layers, compute)
        kernels = layers * m * _KERNELS[self.layout.fuses] * (3.0 + self._share("pointwise"))
        total = sum(c.seconds for c in found)
        if not self.machine.chip.torus and kernels * _LAUNCH_US * 1e-6 > total:
            found.append(Cost("launches", "launch", kernels * _LAUNCH_US * 1e-6 - total))
        return sorted(found, key=lambda c: -c.seconds)

    def _transfer(self) -> tuple[float, float]:
        link = self.links["pipeline"]
        each = 2.0 * self.group_tokens * self.model.width / self.layout.tensor * self.layout.virtual
        # To the next stage, and the gradient back, not beside other work of the stage.
        return 2.0 * (self.layout.virtual * link.alpha_us * 1e-6 + each / link.bytes_per_s), 2.0 * each

    def _bubble(self, busy: float, compute: float) -> Iterator[Cost]:
        stages, m = self.layout.pipeline, self.micro_batches
        if stages == 1:
            return
        if self.layout.schedule == "serial":
            whole = self.model.layers * self._block_seconds + self._vocab_seconds
            yield Cost("bubble: stages wait for each other", "bubble", busy * max(0.0, whole / compute - 1.0))
            return
        yield Cost("bubble: the pipeline fills and drains", "bubble", busy / m * (stages - 1) / self.layout.virtual)

    def _once(self, layers: int, compute: float) -> Iterator[Cost]:
        """Yield the costs that a step has once: reductions of gradients over replicas, and the optimizer."""
        lay = self.layout
        held = self.stage_parameters / lay.fsdp
        # Experts are shared by the ranks of `expert`; the rest of a block is replicated there.
        free = compute * 2.0 / 3.0  # of the last micro-batch's backward
        for axis in ("data", "context"):
            is_divided = axis == "data" and lay.zero1
            reduce, received = self._collective(axis, lay.reduce_bytes * held, 1.0)
            back, more = self._collective(axis, (lay.weight_bytes if is_divided else lay.reduce_bytes) * held, 1.0)
            if not reduce:
                continue
            beside = min(reduce if is_divided else reduce + back, free)
            free -= beside
            exposed = reduce + back - beside + (reduce + back) / max(layers, 1)
            yield Cost(
                f"{axis}: reduction of gradients", "communication", exposed, received + more,
                max(0.0, reduce + back - exposed),
            )  # fmt: skip
        if lay.expert > 1:
            dense = layers * self.dense_parameters / lay.fsdp
            reduce, received = self._collective("expert", 2.0 * lay.reduce_bytes * dense, 1.0)
            exposed = max(0.0, reduce - compute / 2)
            yield Cost("expert: reduction of gradients", "communication", exposed, received, reduce - exposed)
        network = self.machine.network()
        if lay.slices > 1 and network is not None:
            n = lay.slices
            received = 2.0 * (n - 1) / n * lay.reduce_bytes * held
            steps = 2.0 * (n - 1) * (_TENSORS_PER_BLOCK * layers + 2)
            seconds = received / network.bytes_per_s + steps * network.alpha_us * 1e-6
            yield Cost("slices: reduction of gradients", "communication", seconds, received)
        state = lay.optimizer_bytes / (lay.data if lay.zero1 else 1)
        touched = held * (2.0 * lay.weight_bytes + lay.grad_bytes + 2.0 * state)
        yield Cost("optimizer", "memory", self._memory(touched), touched)

    # --- totals --------------------------------------------------------------------------------------------------

    @cached_property
    def seconds(self) -> float:
        """Time of a step."""
        return sum(c.seconds for c in self.costs())

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second and chip."""
        return self.sequences * self.length / self.seconds / self.layout.chips

    @property
    def mfu(self) -> float:
        """Model FLOPs of a second over the 16-bit peak of the chips."""
        return self.tokens_per_s * self.model.flops(self.length) / self.machine.chip.flops_bf16
