"""The tests of global tensors, with several processes: ``python -m tests.distributed.foundation``.

    --processes 4          how many (2 by default), with 8 devices among them
    --one_in 20            a fair sample of the tests
    tests/tensor -k views  what to run, as for pytest; `FILES` and `LATER_FILES` by default

Every process runs every test, each on placements that reach over all of them (`lockstep`), so values, gradients, errors
and layouts are held against the same expectations as with one process. Tests that count on one process are listed in
`ONE_PROCESS` with the reason.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import xla_flags

ROOT = Path(__file__).parent.parent.parent
LAUNCHER = ROOT / "sbpjax" / "distributed" / "launch.py"
DEVICES = 8
RESTARTS = 200

# The files of the foundation whose tests make global tensors.
FILES = [
    "tests/compiler/eager/test_global_ops.py",
    "tests/compiler/test_between_placements.py",
    "tests/compiler/test_gspmd.py",
    "tests/compiler/test_lower.py",
    "tests/compiler/test_interop.py",
    "tests/programs/test_scan_layers.py",
    "tests/programs/rules/test_fallback.py",
    "tests/tensor/test_global.py",
    "tests/tensor/creation/test_creation.py",
    "tests/tensor/dispatch/test_dispatch.py",
    "tests/tensor/handle/test_device.py",
    "tests/tensor/calls/test_bounds.py",
    "tests/tensor/storage/test_offloaded.py",
    "tests/tensor/test_user_scripts.py",
    "tests/tensor/test_linear_algebra.py",
    "tests/functions/test_printing.py",
    "tests/functions/test_random.py",
    "tests/tracing/test_cond.py",
    "tests/tracing/test_checkpoint.py",
    "tests/oracle/test_gradients.py",
    "tests/oracle/test_layouts.py",
    "tests/oracle/test_moves.py",
    "tests/distributed/test_global_view.py",
    "tests/independence",
    "tests/data/checkpoint",
]
# Tests of code above it: layers, optimizers, graphs, mixed precision, transformations, loading.
LATER_FILES = [
    "tests/nn/layers/test_adaptive.py",
    "tests/nn/layers/test_attention.py",
    "tests/nn/layers/test_batchnorm.py",
    "tests/nn/layers/test_dropout.py",
    "tests/nn/layers/test_embedding.py",
    "tests/nn/test_hooks.py",
    "tests/nn/test_image_layers.py",
    "tests/nn/test_init.py",
    "tests/nn/test_layers.py",
    "tests/nn/layers/test_loss.py",
    "tests/nn/layers/test_margin_loss.py",
    "tests/nn/test_module.py",
    "tests/nn/layers/test_rnn.py",
    "tests/nn/test_state.py",
    "tests/nn/layers/test_transformer.py",
    "tests/nn/utils/test_packing.py",
    "tests/nn/utils/test_weight_norm.py",
    "tests/optim/test_clip_grad.py",
    "tests/optim/test_clipping.py",
    "tests/optim/test_compiled.py",
    "tests/optim/test_from_optax.py",
    "tests/optim/test_grad_scaler.py",
    "tests/optim/test_in_graph.py",
    "tests/optim/algorithms/test_lamb.py",
    "tests/optim/algorithms/test_lbfgs.py",
    "tests/optim/test_master_weights.py",
    "tests/optim/test_optimizer.py",
    "tests/optim/test_param_groups.py",
    "tests/optim/test_parameter_state.py",
    "tests/optim/test_step_hooks.py",
    "tests/optim/test_sparse.py",
    "tests/optim/test_update_rules.py",
    "tests/optim/test_zero_state_shapes.py",
    "tests/tensor/amp/test_autocast.py",
    "tests/programs/test_fp32_gradients.py",
    "tests/graph/test_amp.py",
    "tests/graph/test_repeated_layers.py",
    "tests/graph/program/test_compile.py",
    "tests/graph/test_config.py",
    "tests/graph/export/test_export.py",
    "tests/graph/test_graph.py",
    "tests/graph/test_module_proxy.py",
    "tests/graph/program/test_fast_path.py",
    "tests/graph/test_safety.py",
    "tests/graph/test_saving.py",
    "tests/graph/test_step.py",
    "tests/graph/program/test_zero.py",
    "tests/inspect/test_communication.py",
    "tests/inspect/test_explain.py",
    "tests/inspect/test_graph_text.py",
    "tests/inspect/test_html.py",
    "tests/inspect/test_memory.py",
    "tests/inspect/test_profile.py",
    "tests/tracing/test_compiled.py",
    "tests/tracing/test_from_flax.py",
    "tests/tracing/test_transforms.py",
    "tests/tracing/test_wrap_jax.py",
    "tests/data/loading/test_global_loader.py",
    "tests/distributions",
]

# What cannot be asked of several processes: beginnings of test names, and why.
ONE_PROCESS: dict[str, str] = {
    "tests/tensor/test_global.py::test_a_repeated_to_global": "it counts the calls of one process",
    "tests/tensor/calls/test_bounds.py::test_global_indices_are_read_too": (
        "indices on several processes are not read: an error that one of them sees would leave the others waiting"
    ),
    "tests/tensor/test_user_scripts.py::test_an_index_outside_its_dim_is_an_error[S0": "the same",
    "tests/tensor/test_global.py::test_to_global_of_local_and_back": "a process's local tensor is its own part",
    **{
        f"tests/tensor/handle/test_device.py::test_{name}": "the same"
        for name in ("constants_lie_where_the_inputs_are", "gradient_comes_back_from")
    },
    "tests/tensor/test_user_scripts.py::test_threads_do_not": "threads of two processes do not come in one order",
    "tests/data/loading/test_global_loader.py::test_each_tensor_may_have": "it stands in for another process",
    "tests/graph/export/test_export.py::test_missing_and_damaged": "every process would do the same harm to one folder",
    "tests/graph/export/test_export.py::test_manifests_that_do_not_fit": "every process changes one folder",
    "tests/graph/export/test_export.py::test_an_export_replaces": "every process changes one folder, out of step",
    **{
        f"tests/data/checkpoint/test_{name}": "every process writes one file, out of step"
        for name in (
            *("foreign.py::test_torch_files_that_lie", "foreign.py::test_nothing_that_a_torch_file"),
            "torch_alias.py::test_pytorch_reads_what",
        )
    },
    "tests/distributed/test_global_view.py::test_there_and_back": "a process without a rank has an empty part",
    "tests/nn/test_module.py::test_a_state_loads_across_layouts": "a process without a rank has an empty part",
    **{
        f"tests/inspect/test_graph_text.py::test_debug_{name}": "debugging speaks on the first process alone"
        for name in ("prints", "of_one_module")
    },
    "tests/graph/export/test_export.py::test_every_op_family": "every process starts a program that uses one folder",
    "tests/graph/export/test_export.py::test_one_export_for_many": "it names a fourth device; processes have two",
    **{
        f"tests/data/checkpoint/test_saving_sharded.py::test_{name}": (
            "every process would do the same harm to one folder, where the scripts do it once"
        )
        for name in ("damage", "a_crash", "manager", "should_stop")
    },
    **{
        f"tests/data/test_save_load.py::test_{name}": "every process looks at and changes one folder, out of step"
        for name in ("an_interrupted_replacement", "ranks_that_are_not_there")
    },
    **{
        f"tests/distributed/test_data_parallel.py::test_{name}": "threads stand for ranks only in one process"
        for name in ("gradients", "all_gradients", "unused", "different")
    },
}


def run(processes, arguments, one_in=1, limit_s=300, timeout_s=120, quiet=False):
    """Run tests on so many processes and return how each ended: ``{name: {rank: (outcome, text)}}``."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k not in ("NPROC", "SBPJAX_CPU_DEVICES", "XLA_FLAGS")}
        env["XLA_FLAGS"] = xla_flags.QUICK
        env["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "examples")))
        command = [
            *(sys.executable, LAUNCHER, "--port", 0, "--timeout", timeout_s, "--max_restarts", RESTARTS),
            *("--nproc_per_node", processes, "--cpu_devices", DEVICES // processes),
            *("-m", "tests.distributed.lockstep", "--folder", folder, "--one_in", one_in, "--limit", limit_s),
            *("--left_out", json.dumps(ONE_PROCESS), *arguments),
        ]
        sink = subprocess.DEVNULL if quiet else None
        done = subprocess.run(list(map(str, command)), cwd=ROOT, env=env, stdout=sink, stderr=sink)
        ended = Path(folder) / "ended"
        found = dict(json.loads(line) for line in ended.read_text().splitlines()) if ended.exists() else {}
        begun = Path(folder) / "begun"
        for name in begun.read_text().splitlines() if begun.exists() else ():
            found.setdefault(name, {"all": ["lost", f"no rank's end was heard of within {limit_s} s"]})
        if done.returncode:
            found["the run"] = {"all": ["failed", f"ended with code {done.returncode}"]}
    return found


def failures(found):
    """Return a line for every test that did not end well on all ranks."""
    lines = []
    for name, outcomes in found.items():
        bad = {rank: t for rank, t in outcomes.items() if t[0] not in ("passed", "skipped")}
        if bad or len({t[0] for t in outcomes.values()}) > 1:
            last = "; ".join(
                f"rank {r} {o}: {text.strip().splitlines()[-1][:200] if text else ''}" for r, (o, text) in bad.items()
            )
            lines.append(f"{name}: {last}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--one_in", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that a test may take")
    parser.add_argument("--report", type=Path, help="write all outcomes to this file")
    options, rest = parser.parse_known_args()
    found = run(options.processes, rest or [*FILES, *LATER_FILES], options.one_in, options.limit)
    if options.report:
        options.report.write_text(json.dumps(found, indent=1))
    bad = failures(found)
    passed = sum(all(o == "passed" for o, _ in outcomes.values()) for outcomes in found.values())
    print("\n".join(bad))
    print(f"{options.processes} processes: {passed} tests passed on all ranks, {len(bad)} did not")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
