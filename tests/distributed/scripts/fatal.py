"""Run by test_misuse.py on two ranks: one rank does something from which there is no way back, in every start another.

The names of the cases are arguments; start k (`RESTART_COUNT`) runs the k-th, and the launcher starts all ranks again
behind it. A case ends here only where a rank is meant to come to its end.
"""

import functools
import os
import signal
import sys
import time

import sbpjax as flow
from sbpjax.utils.data import DataLoader, Dataset

rank, start = flow.env.get_rank(), int(os.environ["RESTART_COUNT"])


def meet():
    """Run a program of all ranks."""
    return value().sum().item()


@functools.cache
def value():
    """Return a tensor of all ranks."""
    return flow.ones(4, 3, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0))


def an_error_in_user_code():
    if rank == 1:
        raise ValueError("this is rank 1's error")
    meet()


def a_kill():
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    meet()


def a_kill_of_the_coordinator():
    if rank == 0:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    flow.distributed.barrier()


def an_exit_with_a_code():
    if rank == 0:
        sys.exit(7)
    flow.distributed.barrier()


def an_early_end_before_a_barrier():
    if rank == 0:
        flow.distributed.barrier()


def training(between, steps=60):
    """Train in eager mode, and do something between forward and backward of each step."""
    everywhere = flow.placement.all("cpu")
    model = flow.nn.Linear(6, 4).to_global(everywhere, flow.sbp.broadcast)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    x = flow.ones(4, 6, placement=everywhere, sbp=flow.sbp.split(0))
    for k in range(steps):
        loss = (model(x) ** 2).mean()
        between(k, loss, optimizer)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def a_loss_read_on_one_rank_after_a_while():
    """The collectives of two programs meet, and Gloo aborts the rank that gets more than it has room for."""
    training(lambda k, loss, _: loss.item() if k < 30 or rank == 0 else None)


def an_error_while_others_are_in_a_step():
    def fail(k, loss, _):
        loss.item()
        if k == 20 and rank == 1:
            raise ValueError("this is rank 1's error")

    training(fail)
    time.sleep(1000)


def another_learning_rate_in_eager_mode():
    def change(k, loss, optimizer):
        if k == 20 and rank == 1:
            optimizer.param_groups[0]["lr"] = 0.2

    training(change, 300)
    time.sleep(1000)


def an_item_on_one_rank():
    loss = value().sum()
    if rank == 0:
        print("loss", loss.item())
    flow.distributed.barrier()


def a_local_among_global_tensors():
    value() + flow.ones(4, 3)


def an_early_end_of_rank_0():
    if rank == 1:
        flow.distributed.barrier()


def another_number_of_steps():
    for _ in range(3 + (rank == 0)):
        meet()


def another_learning_rate():
    """Steps of a graph of which the 20th differs; the error comes before another 100."""
    everywhere = flow.placement.all("cpu")
    model = flow.nn.Linear(6, 4).to_global(everywhere, flow.sbp.broadcast)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = (self.model(x) ** 2).mean()
            loss.backward()
            return loss

    step = Step()
    x = flow.ones(4, 6, placement=everywhere, sbp=flow.sbp.split(0))
    for k in range(120):
        if rank == 1 and k == 20:
            optimizer.param_groups[0]["lr"] = 0.2
        step(x).item()
    time.sleep(1000)


def another_last_call():
    x = value()
    x + 1, x * 2
    x + 1 if rank else x * 2


def a_read_on_one_rank():
    x = value()
    x.numpy()
    if rank == 0:
        print((x * 1).numpy())  # a program that did not run before: the ranks compare it
    meet()


def a_known_read_on_one_rank():
    value().numpy()
    if rank == 0:
        value().numpy()
    time.sleep(1000)


def an_error_in_a_data_worker():
    loader = DataLoader(Broken(rank), batch_size=2, num_workers=1)
    for _ in loader:
        meet()


class Broken(Dataset):
    """Four samples, of which rank 1 cannot read the last."""

    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if self.rank == 1 and i == 3:
            raise KeyError("sample 3 is broken")
        return i


def a_stopped_rank():
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    flow.distributed.barrier()


def a_stopped_rank_in_a_program():
    meet()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    meet()


def a_rank_that_sleeps():
    if rank == 1:
        time.sleep(1000)
    flow.distributed.barrier()


def a_rank_that_vanishes():
    if rank == 1:
        os._exit(0)
    flow.distributed.barrier()


def main():
    names = sys.argv[1:]
    if start < len(names):
        print(f"rank {rank} runs {names[start]}", file=sys.stderr, flush=True)
        globals()[names[start]]()
    else:
        meet()
        print(f"rank {rank} of 2 passed")


if __name__ == "__main__":  # the workers of a loader import this file to find its dataset
    main()
