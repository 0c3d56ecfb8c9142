"""Run by test_exits.py: a short program of saves, loads and collectives that ends somewhere, somehow.

    ends.py FOLDER SEED

All ranks draw the same program from the seed: steps, which of the ranks end early, where and how. Each prints
``begun K`` when it comes back from the call of save K, and ``ends TIME`` when it ends.
"""

import random
import sys
import time

import sbpjax as flow
from sbpjax.data.checkpoint import blocks

WAYS = ("its end", "exit 0", "exit 3", "error", "Ctrl-C")


class Program:
    """What a seed means.

    Args:
        seed: the seed.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.ranks = draw.choice((1, 2, 2))
        kinds = ("save", "save", "save now", "load", "collective", "read", "compute")
        self.steps = ["save", *draw.choices(kinds, k=draw.randint(1, 5))]
        self.way = draw.choice(WAYS)
        self.who = draw.choice((range(self.ranks), [0], [self.ranks - 1]))
        self.at = draw.randint(1, len(self.steps)) if self.way != "its end" else len(self.steps)
        self.slow_s = [draw.choice((0.0, 0.2, 1.0)) for _ in range(self.ranks)]  # how long each takes to write

    def __repr__(self) -> str:
        return f"{self.ranks} ranks, {self.steps}, ranks {list(self.who)}: {self.way} at {self.at}, {self.slow_s}"


def end(way: str) -> None:
    print(f"ends {time.time()}", flush=True)
    if way == "error":
        raise ValueError("meant to happen")
    if way == "Ctrl-C":
        raise KeyboardInterrupt
    if way != "its end":
        sys.exit(int(way.split()[1]))


def run(folder: str, program: Program) -> None:
    rank = flow.env.get_rank()
    place = flow.placement.all("cpu")
    write, slow_s = blocks.write, program.slow_s[rank]
    blocks.write = lambda *arguments: (time.sleep(slow_s), write(*arguments))
    manager = flow.checkpoint.Manager(folder, keep_last=None)
    x = flow.ones(8, 8, placement=place, sbp=flow.sbp.split(0))
    for number, step in enumerate(program.steps):
        if number == program.at and rank in program.who:
            end(program.way)
            return
        if step.startswith("save"):
            manager.asynchronous = step == "save"
            manager.save(number, {"x": x * number, "number": number})
            print(f"begun {number}", flush=True)
        elif step == "load":
            manager.restore(placement=place)
        elif step == "collective":
            flow.distributed.all_reduce(flow.ones(4))
        elif step == "read":
            (x * 2).sum().item()
        else:
            time.sleep(0.3)
    end(program.way if rank in program.who else "its end")


if __name__ == "__main__":
    run(sys.argv[1], Program(int(sys.argv[2])))
