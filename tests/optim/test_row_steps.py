"""Steps on gradients of rows: PyTorch's sparse optimizers, every layout of a table, and what a program touches.

Layouts are compared with one device over 50 steps to 1e-5.
"""

import re

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.graph import TensorSpec
from sbpjax.nn import functional as F
from tests import xla_flags

ROWS, WIDTH, FEATURES, BATCH = 30, 4, 4, 8
STEPS = 50
SAME = 1e-5
TORCH = 2e-5  # of 20 steps in float32
B, S = flow.sbp.broadcast, flow.sbp.split
LINE, GRID = flow.placement("cpu", [0, 1, 2, 3]), flow.placement("cpu", [[0, 1], [2, 3]])
TABLE = np.random.default_rng(0).standard_normal((FEATURES, ROWS, WIDTH)).astype(np.float32)


def batches(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        ids = rng.integers(0, ROWS // 2, (BATCH, FEATURES))
        yield ids, rng.standard_normal((BATCH, FEATURES, WIDTH)).astype(np.float32)


class Model(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.weight = nn.Parameter(flow.tensor(table))

    def forward(self, ids):
        return F.embedding(ids, self.weight, sparse=True)


class Train(nn.Graph):
    def __init__(self, model, optimizer, steps=1, clip=None, scaler=None, is_sparse=True):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, is_sparse=is_sparse)
        self.config.set_gradient_accumulation_steps(steps)
        if clip is not None:
            self.config.set_clip_grad_norm(clip)
        if scaler is not None:
            self.set_grad_scaler(scaler)

    def build(self, ids, target):
        loss = ((self.model(ids) - target) ** 2).mean()
        loss.backward()
        return loss


def trained(table, make, placement=None, sbp=None, eager=False, count=STEPS, **options):
    model = Model(table)
    if placement is not None:
        model.to_global(placement, sbp)
    optimizer = make(model.parameters())
    optimizer.use_sparse_updates()
    graph = None if eager else Train(model, optimizer, **options)
    losses = []
    for batch in batches(count):
        tensors = [flow.tensor(x) for x in batch]
        if placement is not None:
            tensors = [t.to_global(placement, [S(0)] * len(sbp)) for t in tensors]
        if graph is not None:
            losses.append(graph(*tensors).numpy())
            continue
        optimizer.zero_grad()
        loss = ((model(tensors[0]) - tensors[1]) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().numpy())
    return np.array(losses), model.weight.detach().numpy(), graph


def adam(params):
    return optim.Adam(params, lr=0.05)


LAYOUTS = {
    "rows": (0, LINE, [S(0)]),
    "columns": (0, LINE, [S(1)]),
    "whole": (0, LINE, [B]),
    "rows and columns": (0, GRID, [S(0), S(1)]),
    "rows twice": (0, GRID, [S(0), S(0)]),
    "data and rows": (0, GRID, [B, S(0)]),
    "tables": (1, LINE, [S(0)]),
    "rows of tables": (1, LINE, [S(1)]),
    "columns of tables": (1, LINE, [S(2)]),
    "tables and rows": (1, GRID, [S(0), S(1)]),
    "tables and columns": (1, GRID, [S(0), S(2)]),
}


@pytest.fixture(scope="module")
def alone():
    return {several: trained(TABLE if several else TABLE[0], adam) for several in (0, 1)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_curve_of_one_device(layout, alone):
    several, placement, sbp = LAYOUTS[layout]
    losses, weight, graph = trained(TABLE if several else TABLE[0], adam, placement, sbp)
    np.testing.assert_allclose(losses, alone[several][0], rtol=SAME)
    np.testing.assert_allclose(weight, alone[several][1], rtol=SAME, atol=SAME)
    traffic = graph.traffic()
    assert traffic.planned == traffic.compiled


@pytest.mark.parametrize("layout", ["rows", "tables and columns"])
def test_eager_steps_are_those_of_a_graph(layout, alone):
    several, placement, sbp = LAYOUTS[layout]
    losses, weight, _ = trained(TABLE if several else TABLE[0], adam, placement, sbp, eager=True, count=10)
    np.testing.assert_allclose(losses, alone[several][0][:10], rtol=SAME)


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "sparse adam"])
@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_pytorchs_sparse_optimizers(kind, eager):
    ours, theirs = {
        "sgd": (lambda p: optim.SGD(p, lr=0.5), lambda p: torch.optim.SGD(p, lr=0.5)),
        "adagrad": (
            lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.01, initial_accumulator_value=0.1),
            lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.01, initial_accumulator_value=0.1),
        ),
        "sparse adam": (lambda p: optim.SparseAdam(p, lr=0.05), lambda p: torch.optim.SparseAdam(p, lr=0.05)),
    }[kind]
    table = torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=torch.tensor(TABLE[0]))
    reference = theirs(table.parameters())
    expected = []
    with torch.sparse.check_sparse_tensor_invariants(False):
        for ids, target in batches(20):
            reference.zero_grad()
            loss = ((table(torch.tensor(ids)) - torch.tensor(target)) ** 2).mean()
            loss.backward()
            reference.step()
            expected.append(loss.item())
    losses, weight, _ = trained(TABLE[0], ours, eager=eager, count=20)
    np.testing.assert_allclose(losses, expected, rtol=TORCH)
    np.testing.assert_allclose(weight, table.weight.detach().numpy(), rtol=TORCH, atol=TORCH)


@pytest.mark.parametrize("make", [lambda p: optim.Ftrl(p, lr=0.1, lr_power=0.5), optim.Adagrad, optim.SGD])
def test_named_rows_move_as_in_a_dense_update_and_others_stay(make):
    _, by_rows, _ = trained(TABLE[0], make, count=1)
    dense = Model(TABLE[0])
    optimizer = make(dense.parameters())
    ((ids, target),) = batches(1)
    ((F.embedding(flow.tensor(ids), dense.weight) - flow.tensor(target)) ** 2).mean().backward()
    optimizer.step()
    named = np.unique(ids)
    others = np.setdiff1d(np.arange(ROWS), named)
    np.testing.assert_allclose(by_rows[named], dense.weight.detach().numpy()[named], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(by_rows[others], TABLE[0][others])


def test_an_optimizer_that_moves_all_rows_gets_a_dense_gradient():
    model, other = Model(TABLE[0]), Model(TABLE[0])
    for each, sparse in ((model, True), (other, False)):
        optimizer = optim.Adam(each.parameters(), lr=0.1)
        for ids, _ in batches(3):
            optimizer.zero_grad()
            (F.embedding(flow.tensor(ids), each.weight, sparse=sparse) ** 2).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(model.weight.numpy(), other.weight.numpy(), rtol=1e-6)


@pytest.mark.parametrize("options", [{"steps": 4}, {"clip": 0.05}, {"scaler": True}, {"steps": 2, "clip": 0.05}])
def test_what_stands_between_backward_and_update(options):
    def plain(table):
        """Return what plain eager code with dense gradients gives, rows of zero gradient left alone."""
        model = Model(table)
        optimizer = adam(model.parameters())
        optimizer.use_sparse_updates()
        for ids, target in batches(6):
            optimizer.zero_grad()
            ((F.embedding(flow.tensor(ids), model.weight) - flow.tensor(target)) ** 2).mean().backward()
            if "clip" in options:
                nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
            optimizer.step()
        return model.weight.numpy()

    given = {**options, "scaler": flow.amp.GradScaler(init_scale=2.0**10)} if "scaler" in options else options
    _, weight, _ = trained(TABLE[0], adam, count=6, **given)
    np.testing.assert_allclose(weight, plain(TABLE[0]), rtol=1e-4, atol=1e-5)


def test_a_step_that_overflowed_changes_nothing():
    model = Model(TABLE[0])
    scaler = flow.amp.GradScaler(init_scale=1e38)
    optimizer = optim.SparseAdam(model.parameters(), lr=0.05)
    graph = Train(model, optimizer, scaler=scaler)
    ids, target = next(batches(1))
    graph(flow.tensor(ids), flow.tensor(1e3 * target))
    np.testing.assert_array_equal(model.weight.numpy(), TABLE[0])
    assert int(optimizer.state[model.weight]["step"].item()) == 0


@pytest.mark.parametrize("sbp", [None, [S(0)], [S(1)]], ids=["one device", "rows", "columns"])
def test_the_program_has_no_array_of_the_tables_shape_but_the_table_and_its_state(sbp):
    size = 40_000
    model = nn.Embedding(size, WIDTH)  # dense for eager code; add_optimizer asks for rows
    if sbp is not None:
        model.to_global(LINE, sbp)
    graph = Train(model, optim.Adam(model.parameters()), is_sparse=True)
    tensors = [flow.tensor(x) for x in next(batches(1))]
    tensors = tensors if sbp is None else [t.to_global(LINE, [S(0)]) for t in tensors]
    graph.compile(*tensors)
    compiled = graph.program.lower().compile(xla_flags.USUAL)
    assert compiled.memory_analysis().temp_size_in_bytes < size
    rows, columns = (size // 4, WIDTH) if sbp == [S(0)] else (size, WIDTH // 4 if sbp else WIDTH)
    made = re.findall(rf"= f32\[{rows},{columns}\]\S* ([a-z-]+)", compiled.as_text())
    assert set(made) <= {"parameter", "get-tuple-element", "scatter", "fusion", "call", "bitcast"}, set(made)
    assert made.count("fusion") + made.count("call") <= 3  # one write each of the table and its two moments


def test_steps_of_a_large_table_cost_what_those_of_a_small_one_do():
    """By the compiler's own count of bytes, which is the same on every machine."""
    counts = []
    for size in (10_000, 10_000_000):
        model = nn.Embedding(size, WIDTH, device="meta")
        graph = Train(model, optim.Adam(model.parameters()), is_sparse=True)
        graph.compile(TensorSpec((BATCH, FEATURES), flow.int64), TensorSpec((BATCH, FEATURES, WIDTH)))
        counts.append(graph._g.latest[1].compile().memory_analysis().temp_size_in_bytes)
    assert counts[0] == counts[1]
