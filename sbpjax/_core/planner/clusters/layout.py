"""A layout: how many ways each kind of parallelism divides a step, and the options that change time and memory.

    Layout(fsdp=32, tensor=8, recompute="full", precision="float8", micro_batch=16)

Axes are those of `sbpjax.models.Parallel`: the batch is divided over slices, data, fsdp and expert; parameters over
fsdp, tensor, expert and pipeline. With a tensor axis the positions are divided between its products (sequence
parallelism).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

# What the backward computes again, as shares of the forward's work of each operation. "dots" keeps the results of
# products (MaxText's "minimal"), "dots_but_up" those of all but the MLP's first; "half_dots" every second product's
# and attention's (torchtitan's selective recomputation by ops). The last product of a block has no reader in it.
RECOMPUTE: dict[str, dict[str, float]] = {
    "none": {},
    "dots": {"attention": 1.0, "pointwise": 1.0},
    "dots_but_up": {"attention": 1.0, "up": 1.0, "pointwise": 1.0},
    "half_dots": {"key": 1.0, "out": 1.0, "up": 0.5, "pointwise": 1.0},
    "full": {"query": 1.0, "key": 1.0, "value": 1.0, "attention": 1.0, "out": 1.0, "up": 1.0, "pointwise": 1.0},
}
SCHEDULES = ("1f1b", "gpipe", "serial")
PRECISIONS = ("bfloat16", "float8")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A layout and its options.

    Attributes:
        slices: replicas over the network between slices.
        data: replicas inside a slice.
        fsdp: ranks that share parameters, gradients and optimizer state, gathered for each use.
        tensor: parts of every matrix.
        context: parts of every sequence.
        expert: ranks that share the experts of a mixture.
        pipeline: stages.
        virtual: groups of layers on each stage (interleaved schedule).
        micro_batch: sequences of a micro-batch per rank of the batch.
        schedule: ``"1f1b"``; ``"gpipe"``, which keeps all micro-batches; or ``"serial"``, whose stages wait for each
            other, as measured of pipelines with blocking transfers.
        recompute: a policy of `RECOMPUTE`.
        precision: of products with parameters, the vocabulary's excepted.
        zero1: whether replicas over `data` share the optimizer state.
        weight_bytes: of a parameter between steps.
        grad_bytes: of a gradient.
        optimizer_bytes: of optimizer state (and a master copy) per parameter.
        reduce_bytes: of a gradient's number in collectives.
        fuses: whether a compiler fuses pointwise operations.
        fuses_loss: whether it fuses those of the loss, too.
        logit_bytes: of one logit at the peak of the loss: 4 for logits and gradients in 16 bits; 14 for those, a
            float32 copy, its softmax and its gradient.
        overlaps: whether tensor-parallel collectives run beside their products.
        keeps_gathered: whether the whole input of a product is kept for the backward, not gathered again.
    """

    slices: int = 1
    data: int = 1
    fsdp: int = 1
    tensor: int = 1
    context: int = 1
    expert: int = 1
    pipeline: int = 1
    virtual: int = 1
    micro_batch: int = 1
    schedule: str = "1f1b"
    recompute: str = "none"
    precision: str = "bfloat16"
    zero1: bool = False
    weight_bytes: int = 4
    grad_bytes: int = 4
    optimizer_bytes: int = 8
    reduce_bytes: int = 4
    fuses: bool = True
    fuses_loss: bool = True
    logit_bytes: float = 4.0
    overlaps: bool = True
    keeps_gathered: bool = False

    @property
    def chips(self) -> int:
        """Chips that it takes."""
        return self.batch_ranks * self.tensor * self.context * self.pipeline

    @property
    def batch_ranks(self) -> int:
        """Parts of the batch."""
        return self.slices * self.data * self.fsdp * self.expert

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the axes of a slice, the innermost first."""
        return {a: getattr(self, a) for a in ("tensor", "context", "expert", "fsdp", "data", "pipeline")}

    def micro_batches(self, sequences: int) -> int:
        """Return the number of micro-batches of a batch of so many sequences; 0 if it does not divide."""
        count, rest = divmod(sequences, self.batch_ranks * self.micro_batch)
        return 0 if rest else count

    def text(self) -> str:
        """Return the axes above 1 and the options that are not the default, as text."""
        axes = [f"{a} {n}" for a, n in reversed(self.sizes().items()) if n > 1]
        if self.slices > 1:
            axes.insert(0, f"slices {self.slices}")
        options = [f"micro-batch {self.micro_batch}", f"recompute {self.recompute}"]
        if self.pipeline > 1:
            options.append(f"{self.schedule}" + f" × {self.virtual}" * (self.virtual > 1))
        if self.precision != "bfloat16":
            options.append(self.precision)
        return f"{' × '.join(axes) or 'one chip'}; {', '.join(options)}"

    def parallel(self) -> str:
        """Return the layout as the argument ``parallel`` of `sbpjax.train.Trainer`."""
        sizes = self.sizes() | {"data": self.data * self.slices}
        given = [f"{a}={sizes[a]}" for a in ("pipeline", "data", "fsdp", "context", "expert", "tensor") if sizes[a] > 1]
        return f"Parallel({', '.join(given + ['sequence=True'] * (self.tensor > 1))})"

    def options(self, micro_batches: int) -> str:
        """Return the argument ``options`` of `sbpjax.train.Trainer`."""
        given = ['amp="bfloat16"', f"accumulate={micro_batches}", "zero=3" if self.fsdp > 1 else "zero=1"]
        given += ["checkpointing=True"] * (self.recompute == "full")
        return f"StepOptions({', '.join(given)})"


OPTIONS = tuple(f.name for f in fields(Layout))
