"""Run by test_training.py on one, two or four processes with eight devices among them: the demo GPT, from its script.

    gpt.py FOLDER LAYOUT STEPS KILLS LATEST_S

The run goes on from its checkpoint if there is one, as under `--resume`. The first KILLS starts are killed, a rank
each, at a random moment: two starts within LATEST_S from their beginning, two within MOMENT_S from one of their first
BATCHES batches, and so on. FOLDER holds the curve in the end, and what rank 0 noted of every batch.
"""

import os
import random
import signal
import sys
import threading
from pathlib import Path

import sbpjax as flow
from examples.gpt import train
from examples.gpt.model import GPTConfig
from examples.gpt.sharding import DATA, LAYOUTS, Layout

folder, layout = Path(sys.argv[1]), sys.argv[2]
steps, kills, latest_s = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
MOMENT_S, BATCHES = 0.3, 10
rank, ranks, start = flow.env.get_rank(), flow.env.get_world_size(), int(os.environ["RESTART_COUNT"])
LAYOUTS["pair"] = Layout((0, 1), (DATA,))  # compiles sooner than one of eight devices
OPTIONS = train.Options(
    layout=layout,
    steps=steps,
    batch=8,
    lr=1e-2,
    warmup=2,
    eval_every=5,
    eval_batches=1,
    model=GPTConfig(context=16, layers=1, heads=4, width=16, dropout=0.1),
)


class Kill:
    """The end of this process at a random moment, if it is the one to be killed in this start."""

    def __init__(self):
        rng = random.Random(start)
        if start // 2 % 2:
            self.batches, self.moment_s = rng.randint(1, BATCHES), rng.uniform(0.0, MOMENT_S)
        else:
            self.batches, self.moment_s = 0, rng.uniform(0.0, latest_s)
        self.armed = not (start < kills and rank == start % ranks)
        self.seen(0)

    def seen(self, batches):
        """Let the time run if so many batches are enough."""
        if batches >= self.batches and not self.armed:
            self.armed = True
            threading.Timer(self.moment_s, os.kill, (os.getpid(), signal.SIGKILL)).start()


kill = Kill()


class Noted(train.Trainer):
    """A trainer that writes down its batches: in which start, of which step, and the sum of the tokens."""

    batches = 0

    def batch(self, step):
        self.batches += 1
        kill.seen(self.batches)
        if rank == 0:
            tokens, _ = self.corpus.batch(step, OPTIONS.batch, OPTIONS.model.context)
            with open(folder / "batches", "a", encoding="utf-8") as file:
                file.write(f"{start} {step} {int(tokens.sum())}\n")
        return super().batch(step)


train.Trainer = Noted
trainer = train.train(OPTIONS, folder, resume=True)
flow.distributed.barrier()
if start < kills:  # it ended before its moment: wait for it
    kill.seen(BATCHES)
    threading.Event().wait(latest_s + 30)
print(f"rank {rank} of {ranks} passed")
