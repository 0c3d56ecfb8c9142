"""Run by test_misuse.py on two ranks: a mistake on one of them is an error on both, after which both go on.

A case is what each rank does, and for each rank the error's class and words of its text. Behind every case the ranks
meet, which shows that they are still in step.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import checkpoint, errors
from sbpjax import distributed as dist
from sbpjax._core.runtime import collective_trace
from sbpjax.utils.data import DistributedSampler

rank, n = dist.get_rank(), dist.get_world_size()
folder = Path(sys.argv[1])
everywhere, alone = flow.placement.all("cpu"), flow.placement("cpu", [0])
S, B = flow.sbp.split, flow.sbp.broadcast
R = dist.ReduceOp
WAIT_S, TIMEOUT_S = 0.5, "120"
CASES = {}


def case(kind, *words, first=None, wait=False):
    """Note a case: its error and words on rank 1, and on rank 0 (``first``; the same by default); does it wait?"""

    def note(function):
        CASES[function.__name__] = (function, [first or (kind, *words), (kind, *words)], wait)
        return function

    return note


# ------------------------------------------------------------------------------------------------ collectives


@case(errors.AgreementError, "all_reduce", "ranks [0]: float32[3]", "ranks [1]: float32[4]")
def another_shape():
    dist.all_reduce(flow.ones(3 + rank))


@case(errors.AgreementError, "ranks [0]: float32[7]", "ranks [1]: float64[7]")
def another_dtype():
    dist.all_reduce(flow.ones(7).double() if rank else flow.ones(7))


@case(errors.AgreementError, "ranks [0]: float32[5] {'op': 'sum'}", "ranks [1]: float32[5] {'op': 'max'}")
def another_reduction():
    dist.all_reduce(flow.ones(5), R.MAX if rank else R.SUM)


@case(errors.AgreementError, "ranks [0]: broadcast(tensor, src=0)", "ranks [1]: broadcast(tensor, src=1)")
def another_source():
    dist.broadcast(flow.ones(9), src=rank)


@case(errors.AgreementError, "ranks [0]: barrier()", "ranks [1]: all_reduce(tensor)")
def another_order():
    x = flow.ones(8)
    dist.all_reduce(x) if rank else dist.barrier()


@case(errors.AgreementError, "ranks [0]: all_gather_object", "ranks [1]: barrier()")
def a_collective_on_one_rank_only():
    if rank == 0:
        dist.all_gather_object([None] * n, "here")
    dist.barrier()


@case(errors.LostRankError, "ranks [0] of [0, 1] did not come", f"waited {WAIT_S:g} s", wait=True,
      first=(errors.LostRankError, "ranks [1] of [0, 1] did not come", f"waited {WAIT_S:g} s"))  # fmt: skip
def a_rank_that_comes_too_late():
    if rank:
        until(folder / "waited0")  # until rank 0 has waited in vain
    dist.barrier()


@case(errors.AgreementError, "send and recv from rank 0 to rank 1, tag 3", "all_reduce(tensor)")
def a_send_without_a_receive():
    dist.send(flow.ones(2), dst=1, tag=3) if rank == 0 else dist.all_reduce(flow.ones(2))


@case(errors.AgreementError, "float32[2]", "float32[3]")
def a_receive_of_another_shape():
    dist.send(flow.ones(2), dst=1) if rank == 0 else dist.recv(flow.ones(3), src=0)


@case(errors.AgreementError, "rank 0 has 1", "rank 0 to 1 with tag 0 is sent once and received once")
def a_batch_with_a_send_too_many():
    ops = [dist.P2POp(dist.isend, flow.ones(2), 1)] if rank == 0 else []
    dist.batch_isend_irecv(ops)


@case(errors.AgreementError, "in the group [1, 0]", "ranks [0]: all_reduce(tensor)")
def a_group_in_another_order():
    dist.all_reduce(flow.ones(2), group=dist.new_group([1, 0] if rank else [0, 1]))


@case(errors.OpValueError, "rank 5", "one of the group's: [0, 1]")
def a_source_outside_the_group():
    dist.broadcast(flow.ones(2), src=5)


@case(errors.OpValueError, "[0, 2]", "each once")
def a_group_of_ranks_that_do_not_exist():
    dist.new_group([0, n])


@case(errors.OpValueError, "[0, 0]", "each once")
def a_group_with_a_rank_twice():
    dist.new_group([0, 0])


@case(errors.MixedTensorError, "collectives are for local tensors")
def a_collective_on_a_global_tensor():
    dist.all_reduce(flow.ones(2, placement=everywhere, sbp=B))


# --------------------------------------------------------------------------------------- global tensors, graphs


@case(errors.OpError, "shapes by rank {0: (2, 3), 1: (2, 4)}", "all dims but 0", "dim 1 is 3 on rank 0, 4 on rank 1")
def parts_that_do_not_fit():
    flow.ones(2, 3 + rank).to_global(everywhere, S(0))


@case(errors.OpError, "shapes by rank {0: (4, 8), 1: (5, 8)}", "rank 0 needs 5 rows, rank 1 needs 4 rows", "drop_last")
def uneven_parts():
    flow.ones(4 + rank, 8).to_global(everywhere, S(0))


@case(errors.OpError, "shapes by rank {0: (2,), 1: (2, 1)}", "the same number of dims")
def parts_of_other_dims():
    (flow.ones(2, 1) if rank else flow.ones(2)).to_global(everywhere, S(0))


@case(errors.OpTypeError, "dtypes by rank {0: 'float32', 1: 'int64'}")
def parts_of_another_dtype():
    (flow.arange(3) if rank else flow.ones(3)).to_global(everywhere, S(0))


@case(errors.AgreementError, "split(dim=0)", "broadcast")
def another_sbp():
    flow.ones(4).to_global(everywhere, B if rank else S(0))


@case(errors.AgreementError, "ranks [0]", "ranks [1]", "sum")
def another_eager_op():
    x = flow.ones(6, 4, placement=everywhere, sbp=S(0))
    x.sum(rank).numpy()


@case(errors.AgreementError, "ranks [0]", "ranks [1]", "0.25", "0.5")
def another_number():
    x = flow.ones(6, 5, placement=everywhere, sbp=S(0))
    (x * (0.25 * (1 + rank))).numpy()


class Step(flow.nn.Graph):
    def __init__(self, width=4, scale=1.0, optimizer=flow.optim.SGD, lr=0.1):
        super().__init__()
        flow.manual_seed(0)
        self.model = flow.nn.Linear(4, width).to_global(everywhere, B)
        self.scale = scale
        self.add_optimizer(optimizer(self.model.parameters(), lr=lr))

    def build(self, x):
        loss = (self.model(x) * self.scale).square().mean()
        loss.backward()
        return loss


def batch(rows=4):
    return flow.tensor(np.ones((rows, 4), np.float32), placement=everywhere, sbp=S(0))


@case(errors.OpError, "shapes by rank {0: (5, 4), 1: (6, 4)}")
def another_model():
    Step(width=5 + rank)(batch())


@case(errors.AgreementError, "2 programs, on ranks [0], [1]", "2.0", "3.0", "on rank 0", "on rank 1")
def another_program():
    Step(scale=2.0 + rank)(batch())


@case(errors.AgreementError, "2 programs, on ranks [0], [1]", "float32[4, 4]", "float32[8, 4]")
def another_batch_size():
    Step()(batch(8 if rank else 4))


@case(errors.AgreementError, "2 programs, on ranks [0], [1]")
def another_optimizer():
    Step(optimizer=flow.optim.Adam if rank else flow.optim.SGD)(batch())


@case(errors.AgreementError, "lr", "0.1 on ranks [0]", "0.2 on ranks [1]")
def another_learning_rate():
    Step(lr=0.1 * (1 + rank))(batch())


@case(errors.AgreementError, "rank 0 has 'weight' float32[2, 3]", "rank 1 has 'weight' float32[3, 3]")
def another_model_under_ddp():
    flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(3, 2 + rank))


# ------------------------------------------------------------------------------------------------- checkpoints


def saved(name, **state):
    """Return the path of a checkpoint that both ranks wrote."""
    path = folder / name
    if not path.exists():
        checkpoint.save(state, path)
    dist.barrier()
    return path


@case(errors.CheckpointError, "no such directory",
      first=(errors.CheckpointError, "rank 1 failed with CheckpointError", "no such directory"))  # fmt: skip
def a_directory_that_one_rank_does_not_see():
    path = saved("a", w=flow.ones(3))
    checkpoint.load(folder / "elsewhere" if rank else path)


@case(errors.CheckpointError, "w: [4] here, [3] in the checkpoint",
      first=(errors.CheckpointError, "rank 1 failed with CheckpointError", "w: [4] here"))  # fmt: skip
def a_checkpoint_of_another_model_on_one_rank():
    checkpoint.load(saved("a", w=flow.ones(3)), into={"w": flow.zeros(3 + rank)})


@case(errors.CheckpointError, "['v']", "the checkpoint and `into` have the same names")
def a_checkpoint_of_another_model():
    checkpoint.load(saved("a", w=flow.ones(3)), into={"v": flow.zeros(3)})


@case(errors.CheckpointError, "rank 1 loads", "/b", "/a")
def another_checkpoint():
    a, b = saved("a", w=flow.ones(3)), saved("b", w=flow.zeros(3))
    checkpoint.load(b if rank else a)


@case(errors.CheckpointError, "rank 1 loads", "S0", "B")
def another_layout_of_a_load():
    checkpoint.load(saved("a", w=flow.ones(3)), placement=everywhere, sbp=S(0) if rank else B)


@case(errors.CheckpointError, "rank 1 has other names than rank 0: ['v', 'w']")
def another_state():
    checkpoint.save({"v" if rank else "w": flow.ones(1)}, folder / "never")


@case(errors.CheckpointError, "w: ", "[3, 2]", "on rank 0", "[4, 2]", "on rank 1")
def a_state_of_another_shape():
    checkpoint.save({"w": flow.ones(3 + rank, 2, placement=alone, sbp=B)}, folder / "never")


@case(errors.CheckpointError, "rank 0 failed with CheckpointError", "is no directory",
      first=(errors.CheckpointError, "is no directory"))  # fmt: skip
def a_path_that_is_no_directory():
    if rank == 0:
        (folder / "file").write_text("")
    checkpoint.save({"w": flow.ones(3)}, folder / "file" / "below")


@case(errors.CheckpointError, "w is a object",
      first=(errors.CheckpointError, "rank 1 failed with CheckpointError", "w is a object"))  # fmt: skip
def a_state_that_one_rank_cannot_store():
    checkpoint.save({"w": object() if rank else flow.ones(3)}, folder / "never")


# -------------------------------------------------------------------------------------------------------- data


@case(errors.DataError, "rank=2", "[0, 1]")
def a_sampler_for_a_rank_that_does_not_exist():
    DistributedSampler(range(4), num_replicas=2, rank=2)


def until(path):
    """Wait until a file exists."""
    while not path.exists():
        time.sleep(0.05)


def check(name):
    function, wanted, waits = CASES[name]
    kind, *words = wanted[rank]
    os.environ["SBPJAX_TIMEOUT"] = str(WAIT_S) if waits else TIMEOUT_S
    begun = time.monotonic()
    try:
        function()
    except kind as error:
        text = str(error)
        assert all(w in text for w in words), f"{name}: {text}"
        assert not isinstance(error, errors.SbpjaxError) or "\n  fix:  " in text, f"{name}: {text}"
    else:
        raise AssertionError(f"{name}: no error on rank {rank}")
    if waits:
        (folder / f"waited{rank}").touch()
        until(folder / "waited1")
    os.environ["SBPJAX_TIMEOUT"] = TIMEOUT_S
    assert time.monotonic() - begun < float(TIMEOUT_S), name
    met = [None] * n
    dist.all_gather_object(met, name)
    assert met == [name] * n


collective_trace.set_mode("always")
for name in CASES:
    check(name)
print(f"rank {rank} of {n} passed {len(CASES)} cases")
