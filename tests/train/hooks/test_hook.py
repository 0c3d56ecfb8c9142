"""When hooks are called, and what they keep."""

from sbpjax.train import Checkpoints, Hook
from sbpjax.train.hooks.hook import is_due
from tests.train.cases import trainer


class Counter(Hook):
    """A hook with a state."""

    name = "counter"

    def __init__(self):
        self.calls, self.count = [], 0

    def before_run(self, trainer):
        self.calls.append("before_run")

    def before_step(self, trainer):
        self.calls.append(f"before {trainer.step} {len(trainer.batch)}")

    def after_step(self, trainer):
        self.count += 1
        self.calls.append(f"after {trainer.step}")

    def after_run(self, trainer):
        self.calls.append("after_run")

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def test_the_order_of_calls():
    hook = Counter()
    trainer(steps=2, hooks=[hook]).fit()
    assert hook.calls == ["before_run", "before 0 2", "after 1", "before 1 2", "after 2", "after_run"]


def test_a_state_comes_back(tmp_path):
    trainer(tmp_path, steps=2, hooks=[Counter(), Checkpoints()]).fit()
    hook = Counter()
    made = trainer(tmp_path, steps=3, hooks=[hook, Checkpoints()])
    assert made.resume() and hook.count == 2
    made.fit()
    assert hook.count == 3


def test_due():
    assert [step for step in range(1, 8) if is_due(step, 3, 7)] == [3, 6, 7]
    assert [step for step in range(1, 8) if is_due(step, None, 7)] == [7]
