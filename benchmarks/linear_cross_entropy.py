"""The loss of a language model's last layer in chunks against the composition, on one CPU: memory and time.

Loss and gradients of x, (T, D), and of the weights, (V, D), as one compiled program. "In a graph" is the program that
`nn.Graph` makes of `cross_entropy(linear(x, w), y)`: losses and gradients in one pass. "Eager" is the backward of
`linear_cross_entropy` after its forward. Times are medians of the CPU time of all threads, measured in turns.

    python benchmarks/linear_cross_entropy.py
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.ops.losses.class_loss import _cross_entropy_of_indices
from sbpjax._core.ops.losses.cross_entropy_primitive import linear_cross_entropy
from sbpjax._core.ops.losses.linear_cross_entropy import Loss, gradients


def plain(x, w, y):
    """All logits, and the losses from these."""

    def loss(x, w):
        logits = jax.lax.dot_general(x, w, (((1,), (1,)), ((), ()))).astype("float32")
        return _cross_entropy_of_indices(logits, y, None, 1, -100, 0.0)[0].mean()

    return jax.value_and_grad(loss, (0, 1))(x, w)


def in_graph(x, w, y):
    """Losses and gradients at once."""
    ct = jnp.full(y.shape, 1 / y.size, "float32")
    losses, dx, dw, _ = gradients(x, w, None, y, ct, Loss(), (x.dtype, w.dtype, None))
    return losses.mean(), (dx, dw)


def eager(x, w, y):
    """The losses, and then a program of their own for the gradients."""
    loss = linear_cross_entropy(x, w, None, y).mean()
    # A barrier, so that the compiler does not join what are two programs.
    x, w = jax.lax.optimization_barrier((x, w, loss))[:2]
    return loss, jax.grad(lambda x, w: linear_cross_entropy(x, w, None, y).mean(), (0, 1))(x, w)


FORMS = {"plain": plain, "in a graph": in_graph, "eager": eager}


def shapes(tokens: int, classes: int, width: int, dtype: str) -> list:
    """Return the abstract values of x, w and y."""
    of = jax.ShapeDtypeStruct
    return [of((tokens, width), dtype), of((classes, width), dtype), of((tokens,), "int32")]


def memory(tokens: int, classes: int, width: int) -> None:
    """Print the compiler's temporaries of every form, beside the logits in float32."""
    logits = 4 * tokens * classes
    for dtype in ("float32", "bfloat16"):
        for name, form in FORMS.items():
            compiled = jax.jit(form).lower(*shapes(tokens, classes, width, dtype)).compile()
            size = compiled.memory_analysis().temp_size_in_bytes
            print(
                f"T = {tokens}, V = {classes}, D = {width}, {dtype}, {name}: temporaries {size / 2**20:.0f} MiB, "
                f"{100 * size / logits:.1f} % of the logits in float32"
            )


def times(tokens: int, classes: int, width: int, rounds: int = 5) -> None:
    """Print the CPU time of every form."""
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.standard_normal((n, width)) * width**-0.5, "float32") for n in (tokens, classes))
    y = jnp.asarray(rng.integers(0, classes, tokens), "int32")
    programs = {name: jax.jit(form).lower(x, w, y).compile() for name, form in FORMS.items()}
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for n in range(rounds + 1):
        for name, program in programs.items():
            start = time.process_time()
            jax.block_until_ready(program(x, w, y))
            if n:  # the first warms up
                taken[name].append(time.process_time() - start)
    medians = {name: float(np.median(t)) for name, t in taken.items()}
    estimates = ", ".join(f"{name} {t:.2f} s ({t / medians['plain']:.2f})" for name, t in medians.items())
    print(f"T = {tokens}, V = {classes}, D = {width}, float32, CPU time (of plain): {estimates}")


def main() -> None:
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    memory(8192, 131072, 768)
    for size in ((1024, 32768, 768), (2048, 16384, 512)):
        times(*size)


if __name__ == "__main__":
    main()
