"""Small benchmarks of features that have no script of their own, each beside a peer in the same run.

    python -m benchmarks.features                 # all of them, three minutes on one core; needs torch and transformers
    python -m benchmarks.features einsum metrics  # some
    python -m benchmarks.features --write         # into benchmarks/results/features.md

One process on one core, both sides in turns; CPU time of the whole process (children and threads included where there
are some), medians, and the median of the ratios of neighbouring rounds. A ratio below one is in our favour.
"""

from __future__ import annotations

import argparse
import http.server
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "32")

import jax
import numpy as np
import torch

import sbpjax as flow
from sbpjax import nn

RESULTS = Path(__file__).parent / "results" / "features.md"
SMALL = {
    **{"vocab_size": 512, "hidden_size": 128, "intermediate_size": 256},
    **{"num_hidden_layers": 2, "num_attention_heads": 4},
}
ROWS: dict[str, Callable[[], tuple]] = {}


def row(function):
    """Enter a benchmark; it returns what is measured, the peer, and both as functions without arguments."""
    ROWS[function.__name__] = function
    return function


def cpu() -> float:
    """Return the CPU seconds of this process and its ended children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def turns(ours: Callable, theirs: Callable, rounds: int, calls: int) -> tuple[float, float, float]:
    """Return milliseconds per call of both, and the median ratio."""
    found = []
    for function in (ours, theirs):
        function()
    for _ in range(rounds):
        pair = []
        for function in (ours, theirs):
            begun = cpu()
            for _ in range(calls):
                function()
            pair.append((cpu() - begun) / calls * 1e3)
        found.append(pair)
    mine, other = (statistics.median(pair[i] for pair in found) for i in (0, 1))
    return mine, other, statistics.median(a / b for a, b in found if b)


@row
def einsum():
    """Six contractions of (64, 64) and (8, 64, 64)."""
    a, b = np.random.default_rng(0).standard_normal((2, 8, 64, 64)).astype("f4")
    forms = ["bij,bjk->bik", "bij,bkj->bik", "bij->bji", "bij,bij->b", "bij,jk->bik", "bij->j"]
    second = {"bij,jk->bik": b[0]}

    def run(lib):
        x, y = lib.tensor(a), {form: lib.tensor(second.get(form, b)) for form in forms}
        return lambda: [lib.einsum(form, *([x, y[form]] if "," in form else [x])).sum() for form in forms]

    return "einsum", "torch.einsum", run(flow), run(torch), 50


@row
def scoped_x64():
    """An eager op with JAX's 64-bit types turned on for it alone, against on for the whole process."""
    x, y = flow.ones(4), flow.ones(4)

    def ours():
        for _ in range(100):
            with jax.enable_x64(True):
                x.add(y)

    def theirs():
        for _ in range(100):
            x.add(y)

    return "100 eager ops, 64-bit types turned on for each", "on for the process", ours, theirs, 20


@row
def nested():
    """A graph with 20 tensors in nested dicts, lists and tuples, against the same 20 one by one."""

    class Flat(nn.Graph):
        def build(self, *tensors):
            return [x + 1 for x in tensors]

    class Nested(nn.Graph):
        def build(self, state):
            return {"a": {k: x + 1 for k, x in state["a"].items()}, "b": ([x + 1 for x in state["b"][0]],)}

    tensors = [flow.ones(8) for _ in range(20)]
    given = {"a": {str(i): x for i, x in enumerate(tensors[:10])}, "b": (tensors[10:],)}
    flat, deep = Flat(), Nested()
    return "nested values in and out of a graph", "flat ones", lambda: deep(given), lambda: flat(*tensors), 50


@row
def notebook():
    """What a notebook shows of a tensor on eight devices, with a picture of its parts, against PyTorch's text of it."""
    x = flow.arange(64, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0)).reshape(8, 8)
    y = torch.arange(64).reshape(8, 8)
    return "a tensor of 8 × 8 in a notebook, with its layout", "torch's repr", x._repr_html_, lambda: repr(y), 20


@row
def debug():
    """Building a graph that prints its modules, ops and lines, against building it silently."""

    def built(level):
        class Step(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
                if level:
                    self.debug(level)

            def build(self, x):
                return self.model(x).sum()

        def run():
            with open(os.devnull, "w") as nowhere:
                before, sys.stdout = sys.stdout, nowhere
                try:
                    str(Step().build_graph(flow.ones(4, 8)))
                finally:
                    sys.stdout = before

        return run

    return "a graph built under debug(3)", "built silently", built(3), built(0), 1


@row
def trunc_normal():
    """A million numbers."""
    ours, theirs = flow.empty(1000, 1000), torch.empty(1000, 1000)
    return (
        "nn.init.trunc_normal_, 10⁶ numbers",
        "torch.nn.init.trunc_normal_",
        lambda: nn.init.trunc_normal_(ours)[0, 0].item(),
        lambda: torch.nn.init.trunc_normal_(theirs)[0, 0].item(),
        3,
    )


@row
def metrics():
    """Accuracy of 4,096 answers of 100 classes, against NumPy by hand, which has no say in several processes."""
    from sbpjax.train.evaluation import Accuracy

    rng = np.random.default_rng(0)
    scores, targets = rng.standard_normal((4096, 100)).astype("f4"), rng.integers(0, 100, 4096)
    logits, estimates = flow.tensor(scores), flow.tensor(targets)

    def ours():
        metric = Accuracy(k=(1, 5))
        metric.update(logits, (None, estimates))
        return metric.compute()

    def theirs():
        order = np.argsort(-scores, 1, kind="stable")
        return [(order[:, :k] == targets[:, None]).any(1).mean() for k in (1, 5)]

    return "Accuracy(k=(1, 5)), 4,096 answers", "NumPy", ours, theirs, 3


@row
def export():
    """Loading an exported graph and its first call, against the first call of a new graph, which is in all caches."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(8)))

    class Forward(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    x = flow.ones(4, 64)
    graph = Forward()
    wanted = graph(x)
    folder = tempfile.mkdtemp()
    graph.export(f"{folder}/graph")
    assert (flow.load_graph(f"{folder}/graph")(x) == wanted).all()
    return (
        "load_graph of an export (StableHLO), first call",
        "the model's code, plan and program in the caches on disk",
        lambda: flow.load_graph(f"{folder}/graph")(x).sum().item(),
        lambda: Forward()(x).sum().item(),
        1,
    )


@row
def folders():
    """A Llama of 6 M parameters from a folder of Hugging Face."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    from sbpjax import models

    logging.disable_progress_bar()
    folder = tempfile.mkdtemp()
    config = LlamaConfig(
        vocab_size=8192, hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return (
        "models.from_pretrained, a Llama of 6 M parameters",
        "transformers.from_pretrained",
        lambda: models.from_pretrained(folder),
        lambda: LlamaForCausalLM.from_pretrained(folder),
        1,
    )


@row
def mixtral():
    """Logits and gradients of a Mixtral of two layers and four experts, eager, from one folder."""
    from transformers import MixtralConfig, MixtralForCausalLM

    from sbpjax import models

    folder = tempfile.mkdtemp()
    MixtralForCausalLM(MixtralConfig(**SMALL, num_local_experts=4, num_key_value_heads=4)).save_pretrained(folder)
    tokens = np.random.default_rng(0).integers(0, 512, (4, 64))
    ours, theirs = models.from_pretrained(folder), MixtralForCausalLM.from_pretrained(folder)
    x, y = flow.tensor(tokens), torch.tensor(tokens)

    def mine():
        logits = ours(x)
        (logits[0] if isinstance(logits, tuple) else logits).square().mean().backward()
        return ours.zero_grad()

    def other():
        theirs(y).logits.square().mean().backward()
        return theirs.zero_grad()

    return "Mixtral, forward and backward, eager", "transformers", mine, other, 1


@row
def bert():
    """A step of fine-tuning: BERT with a new head for four classes."""
    from transformers import BertConfig, BertForSequenceClassification

    from sbpjax import models

    folder = tempfile.mkdtemp()
    dropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    BertForSequenceClassification(BertConfig(**SMALL, **dropped, num_labels=4)).save_pretrained(folder)
    rng = np.random.default_rng(0)
    tokens, classes = rng.integers(0, 512, (8, 64)), rng.integers(0, 4, 8)

    def step(lib, model, logits):
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)
        x, y = lib.tensor(tokens), lib.tensor(classes)

        def run():
            loss = lib.nn.functional.cross_entropy(logits(model(x)), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        return run

    ours, theirs = models.from_pretrained(folder), BertForSequenceClassification.from_pretrained(folder).train()
    ours.train()
    return (
        "a step of fine-tuning BERT, eager",
        "transformers",
        step(flow, ours, lambda out: out),
        step(torch, theirs, lambda out: out.logits),
        2,
    )


@row
def resume():
    """The first sample at step 1,000,000 of an endless order, against that at step 0."""
    from sbpjax.train.data.numbered import Permutation

    size = 10**9
    return (
        "a sample's number at place 10⁸ of 10⁹",
        "at place 0",
        lambda: [Permutation(size, 1)[10**8 + i] for i in range(100)],
        lambda: [Permutation(size, 1)[i] for i in range(100)],
        20,
    )


@row
def op_tests():
    """The tests of one op in every form, per case, against one eager call of it."""
    from tests.op_specs.engine import SPECS
    from tests.op_specs.engine.cases import FORMS
    from tests.op_specs.engine.check import tally_of

    x = flow.ones(4, 4)
    ran = tally_of(SPECS["exp"], range(1), 3, list(FORMS)).ran

    def ours():
        for seed in range(1):
            tally_of(SPECS["exp"], [seed], 3, list(FORMS))

    return f"{ran} test cases of exp", f"{ran} eager calls of exp", ours, lambda: [x.exp() for _ in range(ran)], 1


@row
def hub():
    """Weights by URL that are in the cache folder, against fetching them from a server on this machine."""
    served, cache = tempfile.mkdtemp(), tempfile.mkdtemp()
    state = {f"w{i}": torch.randn(256, 256) for i in range(16)}
    torch.save(state, f"{served}/w.pth")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **options):
            super().__init__(*args, directory=served, **options)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/w.pth"

    def ours():
        return flow.hub.load_state_dict_from_url(url, cache, progress=False)

    def theirs():
        Path(cache, "w.pth").unlink(missing_ok=True)
        return flow.hub.load_state_dict_from_url(url, cache, progress=False)

    return "load_state_dict_from_url, 4 MB, in the cache folder", "fetched", ours, theirs, 1


DDP = """
import sys, time
import numpy as np
ours = sys.argv[1] == "ours"
if ours:
    import sbpjax as lib
    from sbpjax.nn.parallel import DistributedDataParallel as DDP
    lib.env.init()
else:
    import os, torch as lib
    from torch.nn.parallel import DistributedDataParallel as DDP
    lib.set_num_threads(1)
    lib.distributed.init_process_group("gloo")
lib.manual_seed(0)
model = DDP(lib.nn.Sequential(*(lib.nn.Linear(256, 256) for _ in range(8))))
optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
x = lib.tensor(np.ones((64, 256), "f4"))
big = lib.tensor(np.ones(1 << 18, "f4"))
def step():
    loss = model(x).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    return loss.item()
def reduce():
    lib.distributed.all_reduce(big); return big[0].item()
found = {}
for name, f in (("step", step), ("reduce", reduce)):
    for _ in range(5): f()
    times = []
    for _ in range(30):
        begun = time.perf_counter(); f(); times.append(time.perf_counter() - begun)
    found[name] = sorted(times)[15] * 1e3
if (lib.env.get_rank() if ours else lib.distributed.get_rank()) == 0:
    print("found", found["step"], found["reduce"], flush=True)
"""


def two_processes() -> list[tuple[str, str, float, float, float]]:
    """Return a step under DistributedDataParallel and an all-reduce of 1 MB, in wall time, medians of 30."""
    folder = tempfile.mkdtemp()
    Path(folder, "ddp.py").write_text(DDP)
    launch = ["-m", "sbpjax.distributed.launch", "--master_port", "0", "--nproc_per_node", "2", "--cpu_devices", "1"]
    found: dict[str, list] = {"ours": [], "theirs": []}
    for _ in range(3):
        for side in found:
            run = [sys.executable, *launch, f"{folder}/ddp.py", side]
            out = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ).stdout
            found[side].append([float(word) for word in out.split("found")[1].split()[:2]])
    rows = []
    for i, name in enumerate(
        ["a step under DistributedDataParallel, two processes", "all_reduce of 1 MB, two processes"]
    ):
        mine, other = (statistics.median(pair[i] for pair in found[side]) for side in ("ours", "theirs"))
        rows.append(
            (
                name,
                "PyTorch with Gloo",
                mine,
                other,
                statistics.median(a[i] / b[i] for a, b in zip(found["ours"], found["theirs"], strict=True)),
            )
        )
    return rows


RESTARTS = """
import os, sys, time
import sbpjax as flow
flow.env.init()
print("up", time.time(), flush=True)
sys.exit(75 if os.environ.get("RESTART_COUNT", "0") == "0" else 0)  # the code that asks for a new start
"""


def restart() -> list[tuple[str, str, float, float, float]]:
    """Return the wall time from the end of two ranks until they are up again, against that of their first start."""
    file = Path(tempfile.mkdtemp(), "job.py")
    file.write_text(RESTARTS)
    launch = ["-m", "sbpjax.distributed.launch", "--master_port", "0", "--max_restarts", "1", "--nproc_per_node", "2"]
    found = []
    for _ in range(7):
        begun = time.time()
        run = [sys.executable, *launch, str(file)]
        out = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ).stdout
        first, second = np.sort([float(line.split()[-1]) for line in out.split("\n") if " up " in line]).reshape(2, 2)
        found.append(((max(second) - max(first)) * 1e3, (max(first) - begun) * 1e3))
    mine, other = (statistics.median(pair[i] for pair in found) for i in (0, 1))
    what = "two ranks end and are up again by the launcher"
    return [(what, "they start for the first time", mine, other, statistics.median(a / b for a, b in found))]


IN_WALL_TIME = {"two_processes": two_processes, "restart": restart}


def main(rows: dict[str, Callable], results: Path, title: str) -> None:
    """Run what is asked for and print a table."""
    program = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=f"{title}, each beside a peer in the same run.")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(rows)}")
    parser.add_argument("--write", action="store_true", help="write the table")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    lines = ["| what | ms | peer | ms | ratio |", "|---|---|---|---|---|"]
    for name in options.names or rows:
        if name in IN_WALL_TIME:
            found = rows[name]()
        else:
            what, peer, ours, theirs, calls = rows[name]()
            found = [(what, peer, *turns(ours, theirs, 7, calls))]
        for what, peer, mine, other, ratio in found:
            lines.append(f"| {what} | {mine:.3g} | {peer} | {other:.3g} | {ratio:.3g} |")
            print(lines[-1], flush=True)
    if options.write:
        wall = " Rows of several processes are wall time, medians of the runs." if set(rows) & set(IN_WALL_TIME) else ""
        head = (
            f"# {title}\n\n"
            f"`python -m benchmarks.{program} --write`, jax {jax.__version__}, torch {torch.__version__}, Python "
            f"{platform.python_version()}, one core of {platform.machine()}, float32, other work on the machine (load "
            f"{os.getloadavg()[0]:.0f}). CPU time a call, medians of 7 rounds in turns, and of the ratios of "
            f"neighbouring rounds: a ratio below one is in our favour.{wall}\n\n"
        )
        results.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main({**ROWS, **IN_WALL_TIME}, RESULTS, "Small features")
