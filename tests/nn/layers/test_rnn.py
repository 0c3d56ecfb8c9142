"""Recurrent layers against PyTorch's: options, packed sequences, gradients, layouts, one small program per layer."""

import time

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn.utils import rnn as packing
from tests.support import graphs
from tests.support.torch_layers import close, flat, numbers, pair, same

OPTIONS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"proj_size": 2, "bias": False, "bidirectional": True}),
    ("GRU", {"num_layers": 2, "batch_first": True}),
    ("GRU", {"bidirectional": True, "bias": False}),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
    ("RNN", {"bidirectional": True}),
]


# planning the backward of a loop takes seconds, so two layers run split by default
SPLIT = [("LSTM", {}, "split"), ("GRU", {"batch_first": True}, "split")]
WIDE = [pytest.param(*option, "split", marks=pytest.mark.exhaustive) for option in OPTIONS]


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # PyTorch's
@pytest.mark.parametrize(("name", "options", "where"), [(*o, "local") for o in OPTIONS] + SPLIT + WIDE, ids=str)
def test_layer_equals_torchs(name, options, where):
    ours, theirs = pair(name, (3, 4), options)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    batch = 0 if options.get("batch_first") else 1
    data = numbers(4, 5, 3) if batch == 0 else numbers(5, 4, 3)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h = numbers(count, 4, options.get("proj_size") or 4, seed=1)
    c = numbers(count, 4, 4, seed=2)
    x, y = flow.tensor(data), torch.tensor(data, requires_grad=True)
    states = [flow.tensor(h), flow.tensor(c)]
    if where == "split":
        placement = flow.placement("cpu", [0, 1])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(batch))
        states = [s.to_global(placement, flow.sbp.split(1)) for s in states]
    x.requires_grad_()
    given = (tuple(states) if name == "LSTM" else states[0]) if where == "split" or count == 2 else None
    other = (torch.tensor(h), torch.tensor(c)) if name == "LSTM" else torch.tensor(h)
    a, b = ours(x, given), theirs(y, None if given is None else other)
    same(ours, theirs, a, b, [(x, y)])


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_packed_sequences(name):
    ours, theirs = pair(name, (3, 4), {"bidirectional": True, "num_layers": 2})
    data, lengths = numbers(6, 4, 3), [3, 6, 1, 4]
    x, y = flow.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    a = ours(packing.pack_padded_sequence(x, lengths, enforce_sorted=False))
    b = theirs(torch.nn.utils.rnn.pack_padded_sequence(y, lengths, enforce_sorted=False))
    assert a[0].batch_sizes.tolist() == b[0].batch_sizes.tolist()
    close(
        packing.pad_packed_sequence(a[0], total_length=7)[0],
        torch.nn.utils.rnn.pad_packed_sequence(b[0], total_length=7)[0],
    )
    same(ours, theirs, a, b, [(x, y)])


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    ours, theirs = pair(name, (3, 4), {"bias": name != "GRUCell"})
    assert repr(ours) == repr(theirs)
    x, h = numbers(2, 3), numbers(2, 4)
    for state in (False, True):
        hx = (flow.tensor(h), flow.tensor(h)) if name == "LSTMCell" else flow.tensor(h)
        hy = (torch.tensor(h), torch.tensor(h)) if name == "LSTMCell" else torch.tensor(h)
        a = ours(flow.tensor(x), *([hx] if state else []))
        b = theirs(torch.tensor(x), *([hy] if state else []))
        for p, q in zip(flat(a), flat(b)):
            close(p, q)
    same(ours, theirs, a, b)


def test_one_sequence_without_a_batch():
    ours, theirs = pair("LSTM", (3, 4), {})
    x = numbers(5, 3)
    a, b = ours(flow.tensor(x)), theirs(torch.tensor(x))
    for p, q in zip(flat(a), flat(b)):
        close(p, q)
        assert tuple(p.shape) == tuple(q.shape)


def test_dropout_lies_between_layers():
    flow.manual_seed(0)
    layer = nn.LSTM(3, 8, num_layers=2, dropout=0.5)
    x = flow.tensor(numbers(5, 2, 3))
    assert not np.allclose(layer(x)[0].numpy(), layer(x)[0].numpy())
    layer.eval()
    assert np.array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())
    with pytest.warns(UserWarning, match="adds dropout after all but last"):
        nn.GRU(3, 4, dropout=0.1)


def test_initial_values_lie_within_the_bound():
    flow.manual_seed(0)
    for weight in nn.GRU(3, 64).parameters():
        found = weight.detach().numpy()
        assert np.abs(found).max() <= 0.125 and abs(found.std() - 0.125 / np.sqrt(3)) < 0.01


@pytest.mark.parametrize("where", ["local", pytest.param("split", marks=pytest.mark.exhaustive)])
def test_300_steps_compile_in_seconds(where):
    layer = nn.LSTM(16, 32)
    x = flow.randn(300, 4, 16)
    if where == "split":
        placement = flow.placement("cpu", [0, 1])
        layer.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(1))
    start = time.process_time()
    layer(x)[0].sum().backward()
    assert layer.weight_hh_l0.grad.abs().sum().item() > 0
    assert time.process_time() - start < 10  # processor time of all threads; 5 s on the wall


def test_lstm_in_a_graph():
    ours, theirs = pair("LSTM", (3, 4), {"batch_first": True})
    optimizer = flow.optim.SGD(ours.parameters(), lr=0.1)

    class Step(graphs.Train):
        loss = staticmethod(lambda model, x: model(x)[0].sum())

    data = numbers(2, 5, 3)
    graph, other = Step(ours, optimizer), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(2):
        a = graph(flow.tensor(data))
        b = theirs(torch.tensor(data))[0].sum()
        other.zero_grad()
        b.backward()
        other.step()
        close(a, b)


def test_autocast_runs_recurrent_layers_lower():
    with flow.autocast("cpu", dtype=flow.bfloat16):
        out, h = nn.GRU(4, 4)(nn.Linear(4, 4)(flow.ones(3, 2, 4)))
        assert out.dtype == h.dtype == nn.RNNCell(4, 4)(flow.ones(2, 4)).dtype == flow.bfloat16


BAD = {
    "T.nn.LSTM(3, 4)(T.ones(2, 2, 5))": "must be equal to input_size",
    "T.nn.LSTM(3, 4, proj_size=4)": "smaller than hidden_size",
    "T.nn.GRU(3, 0)": "greater than zero",
    "T.nn.RNN(3, 4, nonlinearity='sin')": "Unknown nonlinearity",
    "T.nn.LSTM(3, 4)(T.ones(2, 2, 2, 3))": "2D or 3D",
    "T.nn.GRU(3, 4)(T.ones(2, 2, 3), T.ones(1, 3, 4))": "Expected hidden",
    "T.nn.RNN(3, 4, dropout=1.5)": "dropout should be a number",
    "T.nn.utils.rnn.pack_padded_sequence(T.ones(3, 2, 1), [1, 2])": "must be sorted in decreasing order",
    "T.nn.utils.rnn.pack_padded_sequence(T.ones(3, 2, 1), [1, 0])": "has to be greater than 0",
}


@pytest.mark.parametrize("code", BAD)
def test_bad_options(code):
    with pytest.raises((ValueError, RuntimeError)) as expected:
        eval(code, {"T": torch})
    with pytest.raises(expected.type, match=BAD[code]):
        eval(code, {"T": flow})
