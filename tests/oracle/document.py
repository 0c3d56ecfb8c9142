"""`docs/reference/differences.md`, written from the table of differences.

Write it anew after a change of the table, from the repository's root: ``python -m tests.oracle.document``.
"""

from __future__ import annotations

from pathlib import Path

from tests.oracle.differences import SIGNATURES, SNIPPETS

PATH = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
WIDTH = 120

_HEAD = """# Where sbpjax differs from OneFlow

sbpjax keeps OneFlow's programming model: placement, sbp, global tensors, `to_global` and `to_local`. About 15,000 facts
about the behaviour of OneFlow 0.9.0 have been recorded (`tests/oracle/data`), and the tests compare sbpjax with all of
them. This page is generated from the table in `tests/oracle/differences.py`. A test fails if a fact neither holds in
sbpjax nor belongs to one of the classes of differences below, or if a class has no facts.

The following are always the same as in OneFlow: the part of a tensor that each rank holds after `to_global`, whether
the tensor was global or local before, except for the order of ranks (see [the API](#the-api)); the value of every op,
except where OneFlow's value is wrong; and the layout of the gradient of a leaf tensor.

[Compatibility](compatibility.md#optimizers-and-schedules) lists argument names, and the cases in which the optimizers
and schedules of OneFlow and PyTorch compute different steps.

## Layouts of results

A recorded signature consists of an op, the layouts of its inputs and OneFlow's output layout. This table gives the
share of signatures for which sbpjax's output layout is the same as OneFlow's, or sbpjax's plan moves fewer bytes. The
bytes counted for OneFlow's layout are those of the cheapest plan that ends in this layout.

| signatures | share |
|---|---|
| on four ranks | 98 % |
| on two ranks | 98 % |
| with uneven sizes | 99 % |
| on 2 × 2 ranks | 96 % |
| inside graphs, planned as traced programs | 98 % |

For 1,597 cases, the conversions that OneFlow performed were also recorded. In total, sbpjax moves 230 kB and OneFlow
moved 445 kB. sbpjax moves fewer bytes in 705 cases, and more in 2.

The signatures whose output layouts differ fall into these classes:
"""

_API = """
## The API

Other facts are the results of short programs, called *snippets*. Each class below ends with the names of the snippets
whose results differ from the recorded ones. All other snippets give the recorded result. Unless it is listed here as
accepted, every misuse that raises an error, aborts or hangs in OneFlow raises an error in sbpjax. The error states the
operation, its inputs, the broken rule, and one line that fixes the problem.
"""

_LIMITS = """
## Values that depend on the layout

Values never depend on the layout, up to the order of floating-point sums, with two exceptions due to IEEE arithmetic.
First, if a partial sum is multiplied by infinity (or divided by zero), the result is NaN if a summand is zero or if two
summands have opposite signs, although the product of infinity and the sum is infinite. Second, a negative zero becomes
a positive zero in a partial sum.
"""

_TORCH = """\
## Differences from PyTorch

For the semantics, dtypes and errors of single ops, sbpjax follows PyTorch; the tests run both and compare them. This
section lists the exceptions.

Errors and checks:

- `x.numpy()` of a tensor that requires grad returns its value, as in OneFlow (`numpy_grad`). It is a copy, so writing
  to it cannot bypass the tape. PyTorch raises an error to prevent this.
- If `load_state_dict` or `masked_scatter_` raises an error, nothing has been written; in PyTorch, some entries may have
  been written.
- `load_state_dict` loads local tensors into local tensors and global tensors into global tensors, as in OneFlow.
- Indices and class numbers may be int32 wherever they may be int64, as in OneFlow; some of PyTorch's ops reject int32.
- `take_along_dim` rejects an index that is out of range for its dim; PyTorch uses the index modulo the size of the dim.
- Writing to a view whose elements overlap (as after `unfold`) raises an error; PyTorch writes some elements several
  times.
- An index that is out of range raises an error if its value is known: on the CPU, outside compiled programs, and if the
  index is not a partial sum. Otherwise, reading at such an index gives NaN (for integer tensors, the smallest integer),
  and writing has no effect, because a program that runs on an accelerator cannot raise an error.
- The same applies to an integer division by 0, and to arguments that are out of range: a weight for `multinomial`, a
  rate for `poisson`, a standard deviation for `normal`, and a probability for `bernoulli` or `binary_cross_entropy`.
- A singular matrix, or one that is not positive definite, raises a `LinAlgError` on the CPU, outside compiled programs.
  Otherwise, the result contains infinities or NaN. If `cholesky_ex` fails for a matrix, the `info` that it returns is
  1, not the order of the leading minor that is not positive definite.
- `log_softmax` and `softmin` of an empty integer tensor raise an error, as for any other integer tensor; in PyTorch,
  they do not. `nll_loss` has a gradient for some memory layouts for which PyTorch raises an error.

Values:

- Values and gradients at NaN, infinities, zeros and ties are the same as in PyTorch (tested as the form `corners` in
  `tests/op_specs`), except where they depend on the algorithm that computes them. Convolutions, Fourier transforms and
  solvers may spread a NaN differently, and NaN may convert to a different integer. `gelu` of infinity is infinity;
  PyTorch's vectorised code returns NaN. With `p=inf`, `cdist` and `pdist` return NaN if an input contains NaN;
  PyTorch's vectorised code ignores the NaN. If the input of `scatter_reduce` with `amax` or `amin` contains NaN, its
  gradient differs from PyTorch's. An infinite weight in a normalisation layer gives infinities; PyTorch may give NaN,
  depending on the memory layout. The gradient of `householder_product` exists even if a reflection has no inverse. On
  CPUs, denormal numbers are treated as zeros, as in XLA.
- Among equal elements, `kthvalue` and `topk` keep the order of the input, and `mode` treats NaN as the largest value;
  in PyTorch, neither is guaranteed.
- If the size of `CrossMapLRN2d` is even, its window is symmetric and one channel smaller than the size. In PyTorch, the
  first channel is never removed from the running sum; in sbpjax, it is.
- `real` and `imag` are attributes, as in PyTorch; in OneFlow, they are methods.

Memory, devices and settings:

- The result of an op is row-major. PyTorch's elementwise ops keep the strides of their input, so
  `x.t().relu().view(-1)` raises an error in PyTorch and works in sbpjax. Views have PyTorch's strides, offsets and
  `is_contiguous()`, and `view` raises an error for the same shapes as in PyTorch (`tests/tensor/test_strides.py`).
- Arguments for memory formats are accepted, but have no effect. An in-place write may change a tensor's `data_ptr`.
  Memory that a tensor shares through `from_dlpack` is never written to. `set_num_threads` stores the number and has no
  other effect; `use_deterministic_algorithms(True)` compiles every eager op at its first call.
- In `autocast(device_type)`, the device type selects the lists of ops and the default dtype; tensors on devices of
  other types are cast too. Under `autocast("cuda")`, `binary_cross_entropy` runs in float32 instead of raising an
  error.
- `cuda`, `backends` and `boxing.nccl` accept all of their settings; those without a counterpart in XLA have no effect.
- Workers of a `DataLoader` are always new processes (PyTorch forks on Linux). A script that defines its dataset must
  therefore put its main program under `if __name__ == "__main__":`. Workers do not import JAX; [data
  workers](data_workers.md) lists the names that datasets can use there.

Graphs, optimizers and modules:

- A parameter keeps its sbp under ZeRO, in all stages. A program that divides a parameter stores only the parts, but
  `sbp` shows the layout that the user gave, so checkpoints, eager code and other graphs do not depend on whether ZeRO
  is on. In OneFlow, a broadcast parameter is split(0) after a step.
- `Graph.state_dict()` contains a module's state under its name, as in OneFlow. After the first call, OneFlow adds a key
  for each slot (`m.weight-v`, `System-Train-TrainStep`, `System-Train-DynamicLossScale-…`). In sbpjax, the states of
  optimizers, schedules, loss scaler and random stream are stored under `graph.optimizers`, `graph.lr_schedulers`,
  `graph.grad_scaler` and `graph.rng` from the start. Each is the `state_dict` of that object; an optimizer's includes
  the options of its parameter groups.
- `one_embedding`: each table has its own keys; `cache_budget_mb` is the total over all devices; when the capacity is
  reached, a new key raises an error, or replaces a row that `evict` selects; snapshots have a format of their own.
- `SequentialLR` starts each of its schedules at step 0, as in PyTorch; OneFlow uses one step count for all schedules
  (`interval_rescaling=False`). `PolynomialLR` has PyTorch's arguments, `total_iters` and `power`; OneFlow's arguments
  must be passed by name. If other code sets the learning rate, a schedule that multiplies the rate continues from the
  new value, as in PyTorch; in OneFlow, the schedule overwrites this value.
- `F.gumbel_softmax`, `F.pad`, the losses and the pooling layers take PyTorch's arguments in PyTorch's order, where
  OneFlow's differ. Batch normalisation always uses the statistics of the logical batch.
- A sparse gradient is a `RowGrad`, with `ids` and `rows`, not a sparse tensor. An optimizer without sparse updates
  converts the gradient to a dense tensor; in PyTorch, such an optimizer raises an error.

Autograd, compilation and aliases:

- Under the alias `torch`, `torch.compile` recomputes the forward pass in the backward pass. If the compiled Python code
  reads a tensor's value or runs `backward()`, the call is run without compilation, with a warning. Hooks on saved
  tensors are not called inside compiled programs. Forward-mode derivatives of an `autograd.Function` raise an error,
  even if it defines `jvp`.
- `torch.autograd.forward_ad` differentiates the tape twice when a tangent is requested, so a tensor created under
  `no_grad` has no tangent. `detect_anomaly` does not check the inside of compiled programs; `jax.debug_nans(True)`
  does.
- If a view with a hook is later written in place, the hook is called with the gradient of the view before the write, as
  for other tensors. In PyTorch, writing to a view disables its earlier hooks.
- Under the alias `torch`, names without a counterpart (sparse and nested tensors, storages, quantised layers, PyTorch's
  sharded tensors, `torch.export`, `torch.onnx`) can be imported and subclassed. Because the names exist,
  `hasattr(torch, "sparse_coo_tensor")` is True. `isinstance` with such a class is False. Calling one of them raises
  `NotInJaxError`, which suggests a replacement. `torch.multiprocessing` sends tensors by value.
- `torch.nn.parallel.scatter`, `replicate` and `parallel_apply` move nothing to other devices: they cut the inputs, copy
  the module and call the copies one after the other. In sbpjax, layouts divide work over devices, not copies of a
  module.
- Tensors of tensors (`tensor_buffer`) do not exist; they raise `NotInJaxError`, which suggests a list.
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
