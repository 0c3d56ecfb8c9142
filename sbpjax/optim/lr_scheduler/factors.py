"""Factors for `LambdaLR`: warm-up followed by a cosine or a constant."""

from __future__ import annotations

import math
from collections.abc import Callable


def warmup_cosine(warmup: int, total: int, final: float = 0.0) -> Callable[[int], float]:
    """Return the factor that rises linearly over `warmup` steps, then falls along a cosine to `final`."""

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress))

    return factor


def warmup_constant(warmup: int) -> Callable[[int], float]:
    """Return the factor that rises linearly over `warmup` steps, then stays 1."""
    return lambda step: min(1.0, (step + 1) / max(1, warmup))
