"""A small click model over three tables of 64-bit keys, trained under many settings: what several tests compare."""

import numpy as np

import sbpjax as flow
from sbpjax import nn, one_embedding, optim
from sbpjax.nn import functional as F

FEATURES, DIM, BATCH = 3, 4, 64
KEYS = 400  # different ones per table; a cache of 0.015 MiB has 326 rows for Adam


def batches(steps, seed=1):
    """Return so many batches of skewed keys and labels."""
    rng = np.random.default_rng(seed)
    keys = [rng.zipf(1.3, (BATCH, FEATURES)) % KEYS * 2**50 - 2**60 for _ in range(steps)]
    return [(k, rng.integers(0, 2, BATCH).astype(np.float32)) for k in keys]


def store(kind, folder, capacity=5000, cache_mb=0.015, **options):
    """Return the options of a store of a kind."""
    if kind == "device":
        return one_embedding.make_device_mem_store_options(str(folder), capacity, **options)
    made = {"host": "make_cached_host_mem_store_options", "disk": "make_cached_ssd_store_options"}[kind]
    return getattr(one_embedding, made)(cache_mb, str(folder), capacity, **({"size_factor": 3} | options))


def tables(folder, kind="device", name="t", **options):
    """Return tables for the click model."""
    keys = ("padding_idx", "seed", "default_initializer", "dtype", "key_type")
    own = {key: options.pop(key) for key in list(options) if key in keys}
    made = one_embedding.make_table_options(one_embedding.make_uniform_initializer(-0.1, 0.1))
    dtype, key_type = own.pop("dtype", flow.float32), own.pop("key_type", flow.int64)
    found = store(kind, folder, **options)
    return one_embedding.MultiTableEmbedding(name, DIM, dtype, key_type, [made] * FEATURES, found, **own)


class Model(nn.Module):
    """The tables and a linear layer."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        rng = np.random.default_rng(3)
        self.linear = nn.Linear(FEATURES * DIM, 1)
        with flow.no_grad():
            self.linear.weight.copy_(flow.tensor(rng.normal(size=(1, FEATURES * DIM)).astype(np.float32)))
            self.linear.bias.zero_()

    def forward(self, ids, labels):
        scores = self.linear(self.embedding(ids).flatten(1)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(scores, labels)


class Step(nn.Graph):
    """A training step of the model."""

    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, ids, labels):
        loss = self.model(ids, labels)
        loss.backward()
        return loss


def spread(model, placement):
    """Lay the tables out by rows, and the rest whole; every process made the same model."""
    model.linear.to_global(placement, flow.sbp.broadcast)
    model.embedding.to_global(placement, flow.sbp.broadcast)
    model.embedding.to_global(placement, flow.sbp.split(0))
    return model


def place(x, placement):
    """Return an array as a tensor, on a placement this process's part of it."""
    if placement is None:
        return flow.tensor(x)
    n, i = flow.env.get_world_size(), flow.env.get_rank()
    return flow.tensor(x[i * len(x) // n : (i + 1) * len(x) // n]).to_global(placement, flow.sbp.split(0))


def value(loss):
    """Return a loss as a number, on every process."""
    return (loss.to_global(loss.placement, flow.sbp.broadcast).to_local() if loss.is_global else loss).item()


def train(folder, kind="device", optimizer="Adam", placement=None, graph=True, prefetch=False, steps=50, **options):
    """Train and return the losses and the model."""
    model = Model(tables(folder, kind, **options))
    if placement is not None:
        spread(model, placement)
    made = getattr(optim, optimizer)(model.parameters(), lr=0.05)
    step = Step(model, made) if graph else None
    loader = ((place(ids, placement), place(labels, placement)) for ids, labels in batches(steps))
    if prefetch:
        loader = model.embedding.prefetch(loader, keys=lambda batch: batch[0])
    losses = []
    for ids, labels in loader:
        if step is not None:
            loss = step(ids, labels)
        else:
            made.zero_grad()
            loss = model(ids, labels)
            loss.backward()
            made.step()
        losses.append(value(loss))
    return np.array(losses), model


def dense_curve(steps=50, optimizer="Adam", folder="unused"):
    """Return the losses with one `nn.Embedding` on one device, whose rows begin as those of the tables."""
    source = Model(tables(folder))
    keys = np.arange(KEYS) * 2**50 - 2**60
    with flow.no_grad():
        vectors = source.embedding(flow.tensor(np.repeat(keys[:, None], FEATURES, 1)))
    whole = nn.Embedding(KEYS * FEATURES, DIM, sparse=True)
    with flow.no_grad():
        whole.weight.copy_(vectors.transpose(0, 1).reshape(-1, DIM))
    source.embedding = whole
    groups = [{"params": [whole.weight], "is_sparse": True}, {"params": list(source.linear.parameters())}]
    made = getattr(optim, optimizer)(groups, lr=0.05)
    step = Step(source, made)
    offsets = np.arange(FEATURES) * KEYS
    losses = [step(flow.tensor((ids + 2**60) // 2**50 + offsets), flow.tensor(y)).item() for ids, y in batches(steps)]
    return np.array(losses)
