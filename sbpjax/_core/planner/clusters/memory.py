"""Peak memory of one chip in a training step, by part.

Between steps a chip holds its share of parameters, gradients and optimizer state. At the peak it holds, too, the
activations that the backward needs, of every micro-batch in flight, and the working set of one moment: the loss of the
last stage, or the backward of a block, whichever is larger.

Sizes are per token in bytes, with D the width, A that of queries, K of keys, F the hidden units: a block that computes
nothing again keeps its input, queries, keys, values and attention's result, the sum after attention, and gate, up and
product of the MLP: 4 D + 4 A + 4 K + 6 F (8 F without fusion), divided over the tensor axis; and the inputs of its two
first products, 4 D, of which each rank of the axis may keep all (`Layout.keeps_gathered`).
"""

from __future__ import annotations

from dataclasses import dataclass

from .layout import Layout
from .step import Step

_CONTEXT_BYTES = 1.0e9  # of CUDA's and NCCL's contexts and workspaces, or the TPU runtime's reserve


@dataclass(frozen=True)
class Memory:
    """The parts of a chip's peak memory, in bytes.

    Attributes:
        parameters: between steps.
        gathered: copies of parameters that are gathered for use, and gradients before their reduction.
        gradients: of the parameters.
        optimizer: its state, with a master copy.
        activations: kept for the backward.
        working: of the moment of the peak.
        runtime: of the runtime and its communicators.
    """

    parameters: float
    gathered: float
    gradients: float
    optimizer: float
    activations: float
    working: float
    runtime: float = _CONTEXT_BYTES

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return sum(vars(self).values())


def peak(step: Step) -> Memory:
    """Return the peak memory of one chip, of the stage that holds most."""
    lay = step.layout
    held = step.stage_parameters / lay.fsdp
    block = step.dense_parameters + step.expert_parameters
    parameters, gradients, gathered = held * lay.weight_bytes, held * lay.grad_bytes, 0.0
    if lay.fsdp > 1 or lay.weight_bytes > 2:
        if lay.pipeline > 1:  # whole for all micro-batches, with gradients that are reduced after the last
            gathered = step.stage_parameters * (2.0 + lay.grad_bytes * (lay.fsdp > 1))
        else:  # of two blocks, and a gradient
            gathered = 2.0 * (2 * block) + 2.0 * step.vocab_parameters
            gathered += lay.reduce_bytes * max(block, step.vocab_parameters) * (lay.fsdp > 1)
    optimizer = held * lay.optimizer_bytes / (lay.data if lay.zero1 else 1)
    inner, last = step.stage_layers
    tokens = step.group_tokens
    kept = tokens * block_bytes(step, lay.recompute)
    loss = tokens * vocab_bytes(step)
    working = tokens * _working_bytes(step)
    if lay.pipeline == 1:
        activations, moment = last * kept, max(loss, working)
    else:
        # The first stage has as many micro-batches in flight as there are stages, the last one.
        flight = {"gpipe": step.micro_batches, "serial": lay.pipeline}.get(
            lay.schedule, min(step.micro_batches, lay.pipeline)
        )
        flight = flight * (1 + (lay.pipeline - 1) / (lay.pipeline * lay.virtual)) if lay.virtual > 1 else flight
        first = (inner * kept * flight, working)
        end = (last * kept, max(loss, working))
        activations, moment = max(first, end, key=sum)
    return Memory(parameters, gathered, gradients, optimizer, activations, moment)


def block_bytes(step: Step, recompute: str) -> float:
    """Return the bytes per token of a micro-batch that one block keeps for the backward on one chip."""
    m, lay = step.model, step.layout
    hidden = m.hidden * m.used_mlps
    d, a, k, f = 2.0 * m.width, 2.0 * m.query_width, 2.0 * m.kv_width, 2.0 * hidden
    divided = {
        "none": 2 * d + 2 * a + 2 * k + (3 if lay.fuses else 4) * f,
        "dots": 2 * d + a + 2 * k + 2 * f,
        "dots_but_up": 2 * d + a + 2 * k,
        "half_dots": 2 * d + 2 * a + k + f,
        "full": d,
    }[recompute]
    inputs = 2 * d if recompute == "none" else 0.0
    whole = inputs if lay.keeps_gathered else inputs / lay.tensor
    if m.experts and recompute != "full":
        divided += 2.0 * m.active * d  # the tokens in their experts' order, before and after
    return divided / lay.tensor + whole


def vocab_bytes(step: Step) -> float:
    """Return the bytes per token of the loss on one chip."""
    return step.layout.logit_bytes * step.model.vocab / step.layout.tensor + 2 * _gathered_bytes(
        step.layout, step.model.width
    )


def _working_bytes(step: Step) -> float:
    """Return the bytes per token of the backward of one block: what it keeps, and gradients of the MLP or attention."""
    m, lay = step.model, step.layout
    own = block_bytes(step, "none") - block_bytes(step, lay.recompute)
    gradients = 2.0 * max(3 * m.hidden * m.used_mlps, 2 * m.query_width + 2 * m.kv_width) + 4.0 * m.width
    return max(own, 0.0) + gradients / lay.tensor + 2 * _gathered_bytes(lay, m.width)


def _gathered_bytes(lay: Layout, width: int) -> float:
    return 2.0 * width if lay.tensor > 1 else 0.0
