"""`docs/reference/differences.md`, written from the table of differences.

Write it anew after a change of the table, from the repository's root: ``python -m tests.oracle.document``.
"""

from __future__ import annotations

from pathlib import Path

from tests.oracle.differences import SIGNATURES, SNIPPETS

PATH = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
WIDTH = 120

_HEAD = """# Where sbpjax differs from OneFlow

sbpjax keeps OneFlow's programming model: placement, sbp, global tensors, `to_global` and `to_local`. The behaviour of
OneFlow 0.9.0 was recorded as some 15,000 facts (`tests/oracle/data`), and the tests compare sbpjax with all of them.
This page is generated from the table in `tests/oracle/differences.py`. A test fails if a fact is neither the same in
sbpjax nor in a class below, or if a class has no facts.

The following are always the same: the part of a tensor that each rank holds after `to_global`, for global and local
sources, except for the order of ranks (see below); the value of every op, except where OneFlow's value is wrong;
and the layout of the gradient of a leaf.

For argument names, and for the steps of optimizers and schedules where OneFlow and PyTorch differ, see
[Compatibility](compatibility.md#optimizers-and-schedules).

## Layouts of results

This table gives the share of recorded signatures for which sbpjax's output layout is the same as OneFlow's, or the plan
moves fewer bytes. For OneFlow's layout, the bytes are those of the cheapest plan that ends in this layout.

| signatures | share |
|---|---|
| on four ranks | 98 % |
| on two ranks | 98 % |
| with uneven sizes | 99 % |
| on 2 × 2 ranks | 96 % |
| inside graphs, planned as traced programs | 98 % |

For 1,597 cases, the conversions that OneFlow performed were also recorded. sbpjax moves 230 kB where OneFlow moved 445
kB: fewer bytes in 705 cases, and more in 2.

The differences, by class:
"""

_API = """
## The API

The snippets in the following classes have results that differ from the recorded ones. All others give the recorded
result. Every misuse that raises an error, aborts or hangs in OneFlow raises an error in sbpjax, which states the
operation, its inputs, the broken rule, and one line that fixes the problem, unless the misuse is listed here as
accepted.
"""

_LIMITS = """
## Values that depend on the layout

Values never depend on the layout, up to the order of floating-point sums, with two exceptions due to IEEE
arithmetic. A partial sum times infinity (or divided by zero) is NaN if a summand is zero or the products
have opposite signs, although the product of the sum is infinite. A negative zero becomes a positive zero in a partial
sum.
"""

_TORCH = """\
## Differences from PyTorch

For the semantics, dtypes and errors of single ops, sbpjax follows PyTorch; the tests run both. These are the
exceptions.

Errors and checks:

- `x.numpy()` of a tensor that requires grad returns its value, as in OneFlow (`numpy_grad`). It is a copy, so writing
  to it cannot bypass the tape. PyTorch raises an error to prevent this.
- If `load_state_dict` or `masked_scatter_` raises an error, it has written nothing; in PyTorch, it may have written
  some entries.
- `load_state_dict` loads local tensors into local tensors and global tensors into global tensors, as in OneFlow.
- Indices and class numbers may be int32 wherever they may be int64, as in OneFlow; some of PyTorch's ops reject int32.
- `take_along_dim` rejects an index that is out of range for its dim; PyTorch uses the remainder.
- Writing to a view whose elements overlap (by `unfold`) raises an error; PyTorch writes some of them several times.
- An index that is out of range raises an error if its value is known: on the CPU, outside compiled programs, and not in
  a partial sum. Elsewhere, it reads NaN (the smallest integer, for integers) and its writes are dropped, because a
  program that runs on an accelerator cannot raise an error.
- The same applies to an integer division by 0, and to arguments that are out of range: a weight for `multinomial`, a
  rate for `poisson`, a standard deviation for `normal`, and a probability for `bernoulli` or `binary_cross_entropy`.
- A singular matrix, or one that is not positive definite, raises a `LinAlgError` on the CPU, outside compiled programs.
  Elsewhere, the result contains infinities or NaN. The `info` that `cholesky_ex` returns for a matrix that failed is 1,
  not the order of the minor.
- `log_softmax` and `softmin` of an empty integer tensor raise an error, as for any other integer tensor; in PyTorch,
  they do not. `nll_loss` has a gradient for some layouts for which PyTorch raises an error.

Values:

- Values and gradients at NaN, infinities, zeros and ties are the same as in PyTorch (the form `corners` in
  `tests/op_specs`), with exceptions that depend on an algorithm. Convolutions, Fourier transforms and solvers may
  spread a NaN differently, and NaN may convert to a different integer. `gelu` of infinity is infinity, and `cdist` and
  `pdist` with `p=inf` of NaN are NaN; PyTorch's vectorised code returns NaN for the infinity and loses the NaN in the
  other two. The gradient of a NaN that `scatter_reduce` multiplies differs. An infinite weight in a normalisation layer
  gives infinities; PyTorch may give NaN, depending on the memory layout. The gradient of `householder_product` exists
  even if a reflection has no inverse. Denormal numbers count as zeros on CPUs, as in XLA.
- Among equal elements, `kthvalue` and `topk` keep the order of the input, and NaN is the largest value for `mode`; in
  PyTorch, both are arbitrary.
- `CrossMapLRN2d` with an even size uses the symmetric window that is one channel smaller. In PyTorch, the first channel
  is never removed from the sum; in sbpjax, it is.
- `real` and `imag` are attributes, as in PyTorch; in OneFlow, they are methods.

Memory, devices and settings:

- The result of an op is row-major. PyTorch's elementwise ops keep the strides of their input, so
  `x.t().relu().view(-1)` raises an error in PyTorch and works in sbpjax. Views have PyTorch's strides, offsets and
  `is_contiguous()`, and `view` rejects the same views (`tests/tensor/test_strides.py`).
- Memory formats are accepted and have no effect. An in-place write may change a tensor's `data_ptr`. Memory read
  through `from_dlpack` is never written. `set_num_threads` is stored and has no effect;
  `use_deterministic_algorithms(True)` compiles every eager op at its first call.
- `autocast(device_type)` selects the lists of ops and the default dtype; tensors on other devices are cast too. Under
  `autocast("cuda")`, `binary_cross_entropy` runs in float32 instead of raising an error.
- `cuda`, `backends` and `boxing.nccl` accept every setting; settings without a counterpart in XLA have no effect.
- Workers of a `DataLoader` are always new processes (PyTorch forks on Linux). A script that defines its dataset must
  therefore put its main program under `if __name__ == "__main__":`. Workers do not import JAX; [data
  workers](data_workers.md) lists the names that datasets can use there.

Graphs, optimizers and modules:

- A parameter keeps its sbp under ZeRO, in all stages. A program that divides a parameter stores only the parts, but
  `sbp` shows the layout that the user gave, so checkpoints, eager code and other graphs do not depend on the option. In
  OneFlow, a broadcast parameter is split(0) after a step.
- `Graph.state_dict()` contains a module's state under its name, as in OneFlow. After the first call, OneFlow adds a
  key for each slot (`m.weight-v`, `System-Train-TrainStep`, `System-Train-DynamicLossScale-…`). In sbpjax, optimizers,
  schedules, loss scaler and random stream are under `graph.optimizers`, `graph.lr_schedulers`, `graph.grad_scaler` and
  `graph.rng` from the start, with their own `state_dict`, which includes the options of groups.
- `one_embedding`: each table has its own keys; `cache_budget_mb` is the total over all devices; an unseen key beyond
  the capacity raises an error, or replaces a row by the rule of `evict`; snapshots have their own format.
- `SequentialLR` starts each of its schedules at step 0, as in PyTorch; OneFlow uses one step count for all schedules
  (`interval_rescaling=False`). `PolynomialLR` has PyTorch's arguments, `total_iters` and `power`; OneFlow's arguments
  must be passed by name. A schedule that multiplies the learning rate continues from a rate that other code has set, as
  in PyTorch; in OneFlow, it overwrites this rate.
- `F.gumbel_softmax`, `F.pad`, the losses and the pooling layers take PyTorch's arguments in PyTorch's order, where
  OneFlow's differ. Batch normalisation always uses the statistics of the logical batch.
- A sparse gradient is a `RowGrad`, with `ids` and `rows`, not a sparse tensor. An optimizer without sparse updates
  converts it to a dense tensor; in PyTorch, it raises an error.

Autograd, compilation and aliases:

- Under the alias `torch`, `torch.compile` recomputes the forward pass in the backward pass. A call whose Python code
  reads a tensor's value, or runs `backward()`, runs uncompiled, with a warning. Hooks on saved tensors are not called
  inside compiled programs. Forward-mode derivatives of an `autograd.Function` raise an error, even if it defines `jvp`.
- `torch.autograd.forward_ad` differentiates the tape twice when a tangent is requested, so a tensor created under
  `no_grad` has no tangent. `detect_anomaly` does not look into compiled programs; `jax.debug_nans(True)` does.
- A hook on a view that is later written in place is called, as for other tensors, with the gradient of the view before
  the write. In PyTorch, writing to a view disables its earlier hooks.
- Under the alias `torch`, names without a counterpart (sparse and nested tensors, storages, quantised layers,
  PyTorch's sharded tensors, `torch.export`, `torch.onnx`) can be imported and subclassed, and `isinstance` with
  them is False. Calling one raises `NotInJaxError`, which names a replacement. Therefore
  `hasattr(torch, "sparse_coo_tensor")` is True. `torch.multiprocessing` sends tensors by value.
- `torch.nn.parallel.scatter`, `replicate` and `parallel_apply` work in one process on their arguments, because layouts,
  not copies of a module, divide work over devices.
- Tensors of tensors (`tensor_buffer`) do not exist: `NotInJaxError` suggests a list.
"""


def _wrapped(text: str, first: str, rest: str) -> str:
    lines, line = [], first
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH:
            lines.append(line)
            line = rest + word
        else:
            line += (" " if line.strip() and not line.endswith(" ") else "") + word
    return "\n".join([*lines, line])


def text() -> str:
    """Return the page."""
    parts = [_HEAD]
    for d in SIGNATURES:
        parts.append(_wrapped(f"**{d.name}**: {d.reason}", "- ", "  "))
    parts.append(_API)
    merged: dict = {}
    for s in SNIPPETS:
        merged.setdefault((s.name, s.reason), []).append(s)
    for (name, reason), group in merged.items():
        ids = ", ".join(f"`{i}`" for s in group for i in s.ids)
        parts.append(_wrapped(f"**{name}**: {reason} ({ids})", "- ", "  "))
    parts.append(_LIMITS)
    parts.append(_TORCH)
    return "\n".join(parts)


if __name__ == "__main__":
    PATH.write_text(text())
