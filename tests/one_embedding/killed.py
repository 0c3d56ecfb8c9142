"""Trains and saves, and is killed in the middle of saving: the lives of one run, each in a process of its own.

    python -m tests.one_embedding.killed FOLDER [PLACE ...]     # one life per PLACE that kills it, and a last one

Places are ``step:where``: in the ``rows`` of the table's snapshot, before its ``rename``, ``between`` it and the
model's checkpoint, or in the ``model``'s. The process forks before a backend is there, which starts a life in no time.
"""

import os
import pickle
import signal
import sys
from pathlib import Path

import sbpjax as flow
from sbpjax import optim
from sbpjax.one_embedding import snapshots
from tests.one_embedding.training import Model, Step, batches, tables

STEPS, EVERY = 12, 2


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def arm(where):
    """Kill this process at a place of the next saving."""
    if where == "rows":
        real, left = snapshots.write_rows, [3]

        def write(*args):
            left[0] -= 1
            return real(*args) if left[0] else die()

        snapshots.write_rows = write
    elif where == "rename":
        snapshots._commit = die
    elif where == "model":
        os.replace = os.rename = die  # what every commit of a checkpoint ends with


def life(folder, place):
    """Train from the last checkpoint on; append losses to a file; die at a place."""
    at, where = (int(place.split(":")[0]), place.split(":")[1]) if place else (-1, "")
    model = Model(tables(folder, "host"))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    step = Step(model, optimizer)
    start, checkpoint = 0, folder / "model"
    if checkpoint.exists():
        state = flow.load(str(checkpoint))
        start = int(state["step"])
        step.load_state_dict(state["graph"])
    for number, (ids, labels) in enumerate(batches(STEPS)):
        if number < start:
            continue
        loss = step(flow.tensor(ids), flow.tensor(labels)).item()
        with open(folder / "losses", "ab") as file:
            pickle.dump((number, loss), file)
        if (number + 1) % EVERY == 0:
            if number + 1 == at and where in ("rows", "rename"):
                arm(where)
            state = {"step": number + 1, "graph": step.state_dict()}
            if number + 1 == at:
                die() if where == "between" else arm(where)
            flow.save(state, str(checkpoint))
            model.embedding.prune_snapshots(keep=2)


def losses_of(folder):
    """Return the last loss of every step."""
    found = {}
    with open(folder / "losses", "rb") as file:
        while True:
            try:
                number, loss = pickle.load(file)
            except EOFError:
                return found
            found[number] = loss


def main():
    folder, places = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for place in [*places, ""]:
        child = os.fork()
        if not child:
            code = 1
            try:
                life(folder, place)
                code = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed == bool(place) and (place or status == 0), (place, status)
    print(repr(losses_of(folder)))


if __name__ == "__main__":
    main()
