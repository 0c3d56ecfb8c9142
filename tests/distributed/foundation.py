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
    *(f"tests/compiler/test_{name}.py" for name in ("eager", "between_placements", "gspmd", "lower", "interop")),
    *("tests/programs/test_scan_layers.py", "tests/programs/rules/test_fallback.py"),
    *(f"tests/tensor/test_{name}.py" for name in ("global", "creation", "dispatch", "device", "bounds", "stored")),
    *(f"tests/tensor/test_{name}.py" for name in ("user_scripts", "linear_algebra")),
    *(f"tests/functions/test_{name}.py" for name in ("printing", "random")),
    *(f"tests/tracing/test_{name}.py" for name in ("cond", "checkpoint")),
    *(f"tests/oracle/test_{name}.py" for name in ("gradients", "layouts", "moves")),
    *("tests/distributed/test_global_view.py", "tests/independence", "tests/data/checkpoint"),
]
# What stands on it: layers, optimizers, graphs, mixed precision, transformations, loading.
LATER_FILES = [
    *(f"tests/nn/test_{name}.py" for name in ("adaptive", "attention", "batchnorm", "dropout", "embedding", "hooks")),
    *(f"tests/nn/test_{name}.py" for name in ("image_layers", "init", "layers", "loss", "margin_loss", "module")),
    *(f"tests/nn/test_{name}.py" for name in ("rnn", "state", "transformer")),
    *(f"tests/nn/utils/test_{name}.py" for name in ("packing", "weight_norm")),
    *(f"tests/optim/test_{name}.py" for name in ("clip_grad", "clipping", "compiled", "from_optax", "grad_scaler")),
    *(f"tests/optim/test_{name}.py" for name in ("in_graph", "lamb", "lbfgs", "master_weights", "optimizer")),
    *(f"tests/optim/test_{name}.py" for name in ("sharded_state", "sparse", "update_rules", "zero_state_shapes")),
    *("tests/tensor/amp/test_autocast.py", "tests/programs/test_fp32_gradients.py"),
    *(f"tests/graph/test_{name}.py" for name in ("amp", "blocks", "compile", "config", "export", "graph", "proxy")),
    *(f"tests/graph/test_{name}.py" for name in ("repeat", "safety", "saving", "step", "zero")),
    *(
        f"tests/inspect/test_{name}.py"
        for name in ("communication", "explain", "graph_text", "html", "memory", "profile")
    ),
    *(f"tests/tracing/test_{name}.py" for name in ("compiled", "from_flax", "transforms", "wrap_jax")),
    *("tests/data/loading/test_global_loader.py", "tests/distributions"),
]

# What cannot be asked of several processes: beginnings of test names, and why.
ONE_PROCESS: dict[str, str] = {
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
    for name, told in found.items():
        bad = {rank: t for rank, t in told.items() if t[0] not in ("passed", "skipped")}
        if bad or len({t[0] for t in told.values()}) > 1:
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
    passed = sum(all(o == "passed" for o, _ in told.values()) for told in found.values())
    print("\n".join(bad))
    print(f"{options.processes} processes: {passed} tests passed on all ranks, {len(bad)} did not")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
