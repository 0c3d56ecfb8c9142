"""Run by test_divergence.py on two ranks: programs that both know by now, run otherwise on one of them.

Every case ends at the meeting behind it, in one error on both ranks that names the first difference and its line on
both sides; then the ranks begin anew. The background rests meanwhile (`fatal.py` has cases for it). First comes work
that may differ, and is no difference.
"""

import sys
import threading
from pathlib import Path

import sbpjax as flow
from sbpjax import checkpoint, errors, nn
from sbpjax import distributed as dist
from sbpjax._core.runtime import collective_trace
from sbpjax.distributed.rendezvous import start

rank, n = dist.get_rank(), dist.get_world_size()
folder = Path(sys.argv[1])
everywhere, mine = flow.placement.all("cpu"), flow.placement("cpu", [rank])
B, S = flow.sbp.broadcast, flow.sbp.split(0)
start._watch._comparison._over.set()
CASES = {}


def case(*words):
    """Note a case, by the words that stand for rank 0 and rank 1 in its error; the function is made of a warm-up."""

    def note(warm):
        CASES[warm.__name__] = (warm, words)
        return warm

    return note


def linear():
    flow.manual_seed(1)
    return nn.Linear(6, 4).to_global(everywhere, B)


def graph():
    """Return a graph that trains, and its optimizer."""
    model = linear()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = (self.model(x) ** 2).mean()
            loss.backward()
            return loss

    return Step(), optimizer


x = flow.ones(4, 6, placement=everywhere, sbp=S)
w = flow.ones(4, 6, placement=everywhere, sbp=B)


@case("all_reduce(tensor) float32[3]", "all_reduce(tensor) int32[3]")
def another_dtype():
    for dtype in (flow.float32, flow.int32):
        dist.all_reduce(flow.ones(3, dtype=dtype))
    return lambda: dist.all_reduce(flow.ones(3, dtype=flow.int32 if rank else flow.float32))


@case("all_reduce(tensor)", "broadcast(tensor, src=0)")
def another_order():
    calls_of_both = [lambda: dist.all_reduce(flow.ones(5)), lambda: dist.broadcast(flow.ones(5), 0)]

    def run():
        for call in calls_of_both[:: -1 if rank else 1]:
            call()

    for call in calls_of_both:
        call()
    return run


@case("add float32[4, 6] as S0", "mul float32[4, 6] as S0")
def another_op():
    def run(other):
        return x * 2 if other else x + 1

    run(0), run(1)
    return lambda: run(rank)


@case("mul float32[4, 6] as B, number -> B with -1", "mul float32[4, 6] as B, number -> B with -2")
def another_number():
    def run(number):
        return w * number  # Python has the same hash for -1 and -2

    run(-1), run(-2)
    return lambda: run(-1 - rank)


@case("index {'spec': ((2, 1, 0), None)}", "index {'spec': ((3, 1, 0), None)}")
def another_slice():
    w[0:2], w[0:3]
    return lambda: w[0 : 2 + rank]


@case("Step.build, program 1 with lr 0.1", "Step.build, program 1 with lr 0.2")
def another_learning_rate_of_a_graph():
    step, optimizer = graph()
    step(x), step(x)

    def run():
        optimizer.param_groups[0]["lr"] = 0.1 * (1 + rank)
        step(x)

    return run


@case("optimizer step by sgd of 2 parameters with lr 0.1", "optimizer step by sgd of 2 parameters with lr 0.2")
def another_learning_rate():
    model = linear()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    def run():
        (model(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    run(), run()
    optimizer.param_groups[0]["lr"] = 0.1 * (1 + rank)
    return run


@case("Step.build, program 2", "Step.build, program 3")
def graphs_in_another_order():
    one, two = graph()[0], graph()[0]
    one(x), two(x)
    return lambda: (one(x), two(x)) if rank == 0 else (two(x), one(x))


@case("mul float32[4, 6] as B", "barrier()")
def a_write_on_one_rank():
    model = linear()

    def run():
        with flow.no_grad():
            model.weight.mul_(0)

    run(), run()
    return run if rank == 0 else lambda: None


@case("copy_into", "barrier()")
def a_state_loaded_on_one_rank():
    model = linear()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    return (lambda: model.load_state_dict(state)) if rank == 0 else lambda: None


@case("barrier()", "add float32[4, 6] as S0")
def one_call_more():
    x + 1
    return (lambda: x + 1) if rank else lambda: None


def check(name):
    warm, words = CASES[name]
    run = warm()
    dist.barrier()
    run()
    try:
        dist.barrier()
    except errors.AgreementError as error:
        text = str(error)
    else:
        raise AssertionError(f"{name}: no error")
    first, second = text.split("seen: ")[1].split("\n")[0].split("; rank 1: ")
    assert first.startswith(f"rank 0: {words[0]}") and second.startswith(words[1]), f"{name}: {text}"
    assert all(f"{__file__}:" in side for side in (first, second)), text
    assert "\n  rule: " in text and "\n  fix:  " in text
    dist.barrier()


def work_that_may_differ():
    """Local tensors, local graphs, placements of one process, threads, what is held here, and reading a broadcast."""
    flow.ones(3 + rank).sum().item()
    for _ in range(rank):
        y = flow.ones(2, placement=mine, sbp=B) * 3
        y.sum().to_local().item()
        nn.Graph.trace(lambda z: z + 1)(flow.ones(3))
    thread = threading.Thread(target=lambda: w + 7 if rank < 0 else None)
    thread.start()
    thread.join()
    if rank == 0:
        assert w.numpy().sum() == 24  # broadcast over all: no program
        assert x.to_local().shape[0] == 4 // n
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(3, 2))
    model = nn.parallel.DistributedDataParallel(model)
    loss = model.module[0](flow.ones(2, 3)).sum()
    (loss + model.module[1](flow.ones(2, 3)).sum() if rank else loss).backward()
    received = flow.empty(2)
    dist.send(flow.ones(2), 1) if rank == 0 else dist.recv(received, 0)
    try:
        raise ValueError if rank else KeyError
    except (ValueError, KeyError):
        pass
    try:
        flow.ones(2, 6 + rank).to_global(everywhere, S)
    except errors.OpError:
        pass


for _ in range(3):
    work_that_may_differ()
gathered = [None] * n
trail = collective_trace.trace_of(tuple(range(n)))
dist.all_gather_object(gathered, (trail.count, trail.state))
assert gathered[0] == gathered[1] and trail.count > 10, gathered
for name in CASES:
    check(name)

(x + 3), (x + 4)
dist.barrier()
x + (3 + rank)
try:
    checkpoint.save({"x": x}, folder / "never")
except errors.AgreementError:
    assert not (folder / "never").exists()
else:
    raise AssertionError("a checkpoint was written of ranks that differ")

collective_trace.set_mode("always")
dist.barrier()
try:
    x + (3 + rank)
except errors.AgreementError as error:
    assert "with 3" in str(error) and "with 4" in str(error)
else:
    raise AssertionError("no error before the call")
collective_trace.set_mode("sampled")
dist.barrier()
print(f"rank {rank} of {n} passed {len(CASES)} cases")
