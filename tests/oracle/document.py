"""`docs/reference/differences.md`, written from the table of differences.

Write it anew after a change of the table, from the repository's root: ``python -m tests.oracle.document``.
"""

from __future__ import annotations

from pathlib import Path

from tests.oracle.differences import SIGNATURES, SNIPPETS

PATH = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
WIDTH = 120

_HEAD = """# Where sbpjax differs from OneFlow

sbpjax keeps OneFlow's programming model: placement, sbp, global tensors, `to_global` and `to_local`.
The behaviour of OneFlow 0.9.0 was recorded as some 15,000 facts (`tests/oracle/data`), and the tests compare sbpjax
with all of them. This page is written from the table in `tests/oracle/differences.py`: a fact that is neither
equal nor in a class below fails the tests, as does a class with no facts.

The following are always equal: the part of a tensor that each rank holds after `to_global`, for global and local
sources (all of the facts, but for the order of ranks, see below); the value of every op, wherever OneFlow's is right;
and the layout of the gradient of a leaf.

Names of arguments, and the steps of optimizers and schedules where OneFlow and PyTorch differ, are in
[compatibility.md](compatibility.md#optimizers-and-schedules).

## Layouts of results

Measured over the recorded signatures: the output layout is OneFlow's, or strictly cheaper by planned bytes, in 98 %
of those on four ranks, 98 % on two, 99 % with uneven sizes and 96 % on 2 × 2 ranks; planned as traced programs, in 98
% of those recorded inside graphs. The planned bytes of OneFlow's choice are the least that any plan of the same
expression moves to end in OneFlow's layout. For 1,597 cases the conversions that OneFlow performed were recorded too:
ours move 230 kB where OneFlow's moved 445 kB, fewer in 705 cases, more in 2.

The differences, by class:
"""

_API = """
## The API

Recorded snippets whose result differs, by class. All others give the recorded result; every misuse that raises,
aborts or hangs in OneFlow raises here an error with the operation, its inputs, the rule that was broken, and one line
that fixes it, except for those that are listed as accepted.
"""

_LIMITS = """
## Limits of the first rule

"Values never depend on the layout" holds up to the order of floating-point sums, with two exceptions that IEEE
arithmetic makes: a partial sum times infinity (or divided by zero) is NaN where a summand is zero or the products
have opposite signs, although the product of the sum is infinite; and a negative zero in a partial sum is a positive
one.
"""

_TORCH = """\
## Where PyTorch raises and sbpjax does not, and the other way

In semantics, dtypes and errors of single ops sbpjax follows PyTorch; the tests run both. These are the exceptions:

- `x.numpy()` of a tensor that requires grad returns its value, as in OneFlow (`numpy_grad`). It is a copy, so writing
  to it cannot bypass the tape, which PyTorch's error prevents.
- The result of an op is row-major. PyTorch's elementwise ops keep the strides of their input, so that
  `x.t().relu().view(-1)` is refused there and works here. Views have PyTorch's strides, offsets and `is_contiguous()`,
  and `view` is refused for the same ones (`tests/tensor/test_strides.py`).
- `load_state_dict` and `masked_scatter_` write nothing when they raise; PyTorch has written some entries by then.
- `load_state_dict` takes local tensors for local ones and global for global, as in OneFlow.
- Indices and class numbers may be int32 wherever they may be int64, as in OneFlow; some of PyTorch's ops refuse that.
- `take_along_dim` refuses an index outside its dim, where PyTorch takes the remainder.
- Values and gradients at NaN, infinities, zeros and ties are PyTorch's (the form `corners` of `tests/op_specs`), but
  where they depend on an algorithm: convolutions, Fourier transforms and solvers spread a NaN as they like, and which
  integer it becomes is open. `gelu` of infinity is infinity, and `cdist` and `pdist` with `p=inf` of NaN are NaN, where
  PyTorch's vector code gives NaN, or loses it. A NaN that `scatter_reduce` multiplies has other slopes. An
  infinite weight of a normalisation gives infinities, where PyTorch may give NaN, by the layout of memory, and the
  gradient of `householder_product` exists also where a reflection has no inverse. Denormal numbers count as zeros on
  CPUs, as XLA computes.
- Which of equal elements `kthvalue` and `topk` name, and where NaN stands for `mode`, is arbitrary in PyTorch; here
  equal elements keep their order, and NaN is the largest.
- A write to a view whose elements overlap by `unfold` is refused; PyTorch writes some of them several times.
- A matrix that is singular or not positive definite is a `LinAlgError` where the result is at hand: on the CPU, outside
  compiled programs. Elsewhere it gives infinities or NaN. The `info` of `cholesky_ex` is 1 for a matrix that
  failed, not the number of its minor.
- `real` and `imag` are attributes, as in PyTorch; OneFlow's are methods.
- Memory formats are accepted and change nothing; a write in place may move a tensor's `data_ptr`; memory read through
  `from_dlpack` is never written. `set_num_threads` is noted and has no effect; `use_deterministic_algorithms(True)`
  compiles every eager op at its first call.
- Tensors of tensors (`tensor_buffer`) do not exist: `NotInJaxError` suggests a list.
- An index outside its dim is an error where the index is at hand: on the CPU, outside compiled programs and not a
  partial sum. Elsewhere it reads NaN (the smallest integer, for integers) and its writes are dropped, because a
  program that runs on an accelerator cannot raise.
- So are an integer divided by 0, a weight of `multinomial`, a rate of `poisson`, a deviation of `normal`, and a
  probability of `bernoulli` or `binary_cross_entropy` outside its range: on the CPU, outside compiled programs.
- `autocast(device_type)` chooses the lists of ops and the default dtype; tensors on other devices are cast too. Under
  `autocast("cuda")`, `binary_cross_entropy` runs in float32 instead of raising.
- Workers of a `DataLoader` are always new processes (PyTorch on Linux forks): a script whose dataset is defined in it
  keeps its main program under `if __name__ == "__main__":`. They have no JAX; [data workers](data_workers.md) lists
  the names that datasets can use there.
- A parameter keeps its sbp under ZeRO, in all stages: a program that divides it stores the parts, and shows the layout
  that the user gave it, so that checkpoints, eager code and other graphs need not know of the option. OneFlow leaves
  a broadcast parameter as split(0) after a step.
- `Graph.state_dict()` has a module's state under its name, as in OneFlow. OneFlow adds, after the first call, a
  key for each slot (`m.weight-v`, `System-Train-TrainStep`, `System-Train-DynamicLossScale-…`); here the optimizers,
  schedules, loss scaler and random stream are under `graph.optimizers`, `graph.lr_schedulers`, `graph.grad_scaler` and
  `graph.rng`, with their own `state_dict`, which holds the options of groups too, from the start.
- `cuda`, `backends` and `boxing.nccl` accept every setting; those that XLA has no counterpart for change nothing.
- `one_embedding`: each table has keys of its own; `cache_budget_mb` is of all devices together; an unseen key beyond
  the capacity is an error, or replaces a row by the rule of `evict`; snapshots have a format of their own.
- `SequentialLR` starts each of its schedules at 0, as in PyTorch; OneFlow counts all by one step count
  (`interval_rescaling=False`). The arguments of `PolynomialLR` are PyTorch's, `total_iters` and `power`; OneFlow's go
  by name. A schedule by factors goes on from a rate that another has written, as in PyTorch; OneFlow's sets its own.
- `F.gumbel_softmax`, `F.pad`, the losses and the pooling layers take PyTorch's arguments in PyTorch's order, where
  OneFlow's differ. Batch normalisation has one kind of statistics, those of the logical batch.
- `CrossMapLRN2d` of an even size takes the symmetric window of one channel less; PyTorch's never takes the first
  channel out of its sum again, ours does.
- A sparse gradient is a `RowGrad`, with `ids` and `rows`, and no sparse tensor. An optimizer without sparse updates
  makes it dense, where PyTorch's raise.
- `torch.compile` under the alias computes the forward again in the backward. A call whose Python reads a tensor's
  value, or runs `backward()` inside, runs uncompiled, with a warning. Hooks on saved tensors are not called inside
  compiled programs. Forward-mode derivatives of an `autograd.Function` are an error, also where it defines `jvp`.
- Under the alias `torch`, names without a meaning here (sparse and nested tensors, storages, quantised layers,
  PyTorch's sharded tensors, `torch.export`, `torch.onnx`) can be imported, subclassed and used
  in `isinstance`, which is False; calling one raises `NotInJaxError` with a replacement. So
  `hasattr(torch, "sparse_coo_tensor")` is True. `torch.multiprocessing` sends tensors by value.
- `torch.autograd.forward_ad` differentiates the tape twice when a tangent is requested, so a tensor made under
  `no_grad` has none. `detect_anomaly` does not look into compiled programs; `jax.debug_nans(True)` does.
  `torch.nn.parallel.scatter`, `replicate` and `parallel_apply` work in one process on their arguments: devices
  are shared by layouts, not by copies of a module.
- `log_softmax` and `softmin` of an empty tensor of integers are errors, as of any other; PyTorch does not look where
  there is nothing. Its `nll_loss` of some layouts stops at a gradient of its own that is not contiguous; ours has one.
- A hook on a view that is later written in place is called, with the gradient of the view before the write;
  PyTorch's writes to a view bypass its old hooks. Hooks on tensors that are no views are called alike.
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
