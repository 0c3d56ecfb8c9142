"""A step under ZeRO on any placement: test_zero.py and scripts/zero.py save its state and load it in other layouts.

The full state is what a resumed run needs bit by bit: parameters, and of each the two moments and the step count.
"""

import numpy as np

import sbpjax as flow
from sbpjax import checkpoint, nn, sbp

WIDTH, BATCH, LAYERS = 16, 32, 2
STEPS, MORE = 3, 2  # before the checkpoint, and behind it
LOSS_TOLERANCE = 2e-5  # relative, float32 sums in another order


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(flow.nn.functional.gelu(self.up(self.norm(x))))


class Train(nn.Graph):
    """Blocks under AdamW, data parallel on the first axis and tensor parallel on the second, if there is one.

    Args:
        ranks: of the placement.
        stage: of ZeRO; 0 for none.
    """

    def __init__(self, ranks, stage):
        super().__init__()
        flow.manual_seed(0)
        self.net = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.place = flow.placement("cpu", ranks)
        axes = len(self.place.hierarchy)
        self.net.to_global(self.place, [sbp.broadcast] * axes)
        for name, p in self.net.named_parameters():
            if axes == 2 and ("up" in name or name.endswith("down.weight")):
                p.data = p.data.to_global(sbp=[sbp.broadcast, sbp.split(0 if "up" in name else 1)])
        self.batch = [sbp.split(0), sbp.broadcast][:axes]
        self.add_optimizer(flow.optim.AdamW(self.net.parameters(), lr=0.01))
        if stage:
            self.config.enable_zero(True, stage=stage, shard_min_size=64)

    @property
    def optimizer(self):
        return self._g.optimizers[0].optimizer

    def build(self, x, y):
        loss = ((self.net(x) - y) ** 2).mean()
        loss.backward()
        return loss

    def steps(self, first, count):
        """Do so many steps and return their losses; a step's batch follows from its number."""
        losses = []
        for step in range(first, first + count):
            rng = np.random.default_rng(step)
            x, y = (rng.normal(size=(BATCH, WIDTH)).astype(np.float32) for _ in range(2))
            x, y = (flow.tensor(a, placement=self.place, sbp=self.batch) for a in (x, y))
            losses.append(self(x, y).item())
        return losses

    def state(self):
        """Return what `checkpoint.save` is to write."""
        return {"model": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, path):
        """Go on from a checkpoint, whatever its layout."""
        found = checkpoint.load(path, placement=self.place, sbp=sbp.broadcast)
        self.net.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])


def values(state, name=""):
    """Return the tensors of a state as NumPy arrays by name; all processes call it."""
    if isinstance(state, flow.Tensor):
        return {name: state.detach().numpy()}
    if not isinstance(state, (dict, list, tuple)):
        return {}
    items = state.items() if isinstance(state, dict) else enumerate(state)
    return {n: a for key, value in items for n, a in values(value, f"{name}/{key}" if name else str(key)).items()}


def assert_same_bits(got, wanted):
    assert list(got) == list(wanted)
    for name, a in got.items():
        b = wanted[name]
        assert a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes(), name


def check(path, wanted, losses, ranks, stage, layouts):
    """Assert that a checkpoint gives the same bits in every layout, and that a run on other ranks goes on from it.

    Args:
        path: the checkpoint.
        wanted: its tensors by name.
        losses: of the steps behind it.
        ranks: of the run that goes on.
        stage: of that run.
        layouts: pairs of ranks and sbp in which it is loaded as it is.

    Returns:
        The run, at the state of the checkpoint: its own steps are done on a copy of its state.
    """
    for where, how in layouts:
        assert_same_bits(values(checkpoint.load(path, placement=flow.placement("cpu", where), sbp=how)), wanted)
    run = Train(ranks, stage)
    run.load(path)
    assert_same_bits(values(run.state()), wanted)
    np.testing.assert_allclose(run.steps(STEPS, MORE), losses, rtol=LOSS_TOLERANCE)
    run.load(path)
    assert_same_bits(values(run.state()), wanted)  # now out of the parts in which the graph keeps them
    return run
