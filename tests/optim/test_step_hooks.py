"""Hooks run once around a step, and may replace its arguments."""

from sbpjax import optim
from tests.optim.test_optimizer import make


def test_subclass_with_its_own_step_runs_each_hook_once():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    optimizer, seen = Twice(make(None), lr=0.1), []
    optimizer.register_step_pre_hook(lambda *a: seen.append(("pre", a[1:])))
    optimizer.register_step_post_hook(lambda *a: seen.append(("post", a[1:])))
    glob = optim.optimizer.register_optimizer_step_post_hook(lambda *a: seen.append("global"))
    optimizer.step()
    glob.remove()
    assert seen == [("pre", ((), {})), ("post", ((), {})), "global"]


def test_step_pre_hook_replaces_arguments():
    optimizer, called = optim.SGD(make(None), lr=0.1), []
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((lambda: called.append(1),), kwargs))
    optimizer.step()
    assert called == [1]
