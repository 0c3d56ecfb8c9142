"""Recurrent layers: Elman, LSTM and GRU cells, and one `lax.scan` over time per layer and direction.

The product with the inputs of all steps is one matrix product before the loop; the loop holds the product with the
state alone. Worked case: an LSTM of 64 units over 300 steps multiplies (300 · N, I) by (I, 256) once and scans
(N, 64) by (64, 256) 300 times; the program is as large for 3 steps. Under a split of the batch every rank scans its
rows and nothing moves in the loop.

Gates are in torch's order in a weight: input, forget, cell, output for the LSTM; reset, update, new for the GRU.
Padded rows of a batch of sequences (`lengths`) keep their state and give zeros, as a packed sequence does.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax

from ..dims import fail
from ..elementwise import sigmoid, tanh
from ..promote import INT64, broadcast_to, cast
from ..randoms.random import dropout


def _linear(x, weight, bias):
    """Return ``x @ weight.T + bias`` over the last dim of x."""
    out = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))
    return (
        out if bias is None else out + lax.broadcast_in_dim(bias, (1,) * (out.ndim - 1) + bias.shape, (out.ndim - 1,))
    )


def _gates(x, count: int):
    size = x.shape[-1] // count
    return [lax.slice_in_dim(x, i * size, (i + 1) * size, axis=x.ndim - 1) for i in range(count)]


def _relu(x):
    return lax.max(x, np.zeros((), x.dtype))


def _elman_tanh(given, state, weight, bias):
    h = tanh(given + _linear(state[0], weight, bias))
    return (h,)


def _elman_relu(given, state, weight, bias):
    h = _relu(given + _linear(state[0], weight, bias))
    return (h,)


def _lstm(given, state, weight, bias):
    h, c = state
    i, f, g, o = _gates(given + _linear(h, weight, bias), 4)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def _gru(given, state, weight, bias):
    (h,) = state
    given_r, given_z, given_n = _gates(given, 3)
    own_r, own_z, own_n = _gates(_linear(h, weight, bias), 3)
    update = sigmoid(given_z + own_z)
    new = tanh(given_n + sigmoid(given_r + own_r) * own_n)
    return (new + update * (h - new),)


CELLS = {"RNN_TANH": _elman_tanh, "RNN_RELU": _elman_relu, "LSTM": _lstm, "GRU": _gru}


def _direction(x, state, weights, cell, reverse: bool, counts):
    """Return ``(T, N, H)`` outputs and the last state of one layer in one direction."""
    w_ih, w_hh, b_ih, b_hh, *project = weights
    # One large product before the loop instead of T small ones in it.
    given = _linear(x, w_ih, b_ih)  # (T, N, gates * H)

    def step(carry, now):
        value, runs = now if counts is not None else (now, None)
        new = cell(value, carry, w_hh, b_hh)
        if project:
            new = (_linear(new[0], project[0], None), *new[1:])
        out = new[0]
        if runs is not None:
            # A sequence that has ended keeps its state: packed sequences run padded to the longest.
            new = tuple(lax.select_n(broadcast_to(runs, n.shape), old, n) for old, n in zip(carry, new))
            out = lax.select_n(broadcast_to(runs, out.shape), lax.full_like(out, 0), out)
        return new, out

    last, outputs = lax.scan(step, state, given if counts is None else (given, counts), reverse=reverse)
    return outputs, last


def recurrent(
    x,
    lengths,
    key,
    h0,
    c0,
    /,
    *weights,
    mode: str,
    num_layers: int = 1,
    bidirectional: bool = False,
    has_biases: bool = True,
    batch_first: bool = False,
    projects: bool = False,
    dropout_p: float = 0.0,
):
    """Return (outputs, last h[, last c]) of stacked recurrent layers.

    Args:
        x: ``(T, N, I)``, or ``(N, T, I)`` with `batch_first`.
        lengths: ``(N,)`` numbers of steps per row, or None for T.
        key: the random key of dropout, or None.
        h0: ``(layers * directions, N, H)``, or None for zeros.
        c0: the same for an LSTM's cell.
        weights: per layer and direction `w_ih`, `w_hh`, then `b_ih`, `b_hh`, then a projection.
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        num_layers: the number of layers.
        bidirectional: each layer also runs from the end, and gives both results side by side.
        has_biases: whether `weights` has biases.
        batch_first: the batch is dim 0 of x and of the outputs.
        projects: whether `weights` has projections of h.
        dropout_p: probability of a zero between layers.
    """
    if batch_first:
        x = lax.transpose(x, (1, 0, 2))
    steps, batch, _ = x.shape
    directions = 2 if bidirectional else 1
    size = 2 + 2 * has_biases + projects
    cell, is_lstm = CELLS[mode], mode == "LSTM"
    counts = None
    if lengths is not None:
        place = lax.broadcasted_iota(INT64, (steps, batch), 0)
        runs = lax.lt(place, lax.broadcast_in_dim(cast(lengths, INT64), (steps, batch), (1,)))
        counts = lax.expand_dims(runs, (2,))
    last_h, last_c = [], []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            number = layer * directions + d
            own = list(weights[number * size : (number + 1) * size])
            if not has_biases:
                own[2:2] = [None, None]
            width = own[4].shape[0] if projects else own[1].shape[1]
            state = (_first(h0, number, (batch, width), x.dtype),)
            if is_lstm:
                state = (*state, _first(c0, number, (batch, own[1].shape[0] // 4), x.dtype))
            out, last = _direction(x, state, own, cell, d == 1, counts)
            outputs.append(out)
            last_h.append(last[0])
            if is_lstm:
                last_c.append(last[1])
        x = outputs[0] if directions == 1 else lax.concatenate(outputs, 2)
        if dropout_p and key is not None and layer < num_layers - 1:
            x = dropout(_layer_key(key, layer), x, p=dropout_p)
    out = lax.transpose(x, (1, 0, 2)) if batch_first else x
    if is_lstm:
        return out, _stack_states(last_h), _stack_states(last_c)
    return out, _stack_states(last_h)


def _layer_key(key, layer: int):
    typed = key if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)
    return jax.random.fold_in(typed, layer)


def _first(states, number: int, shape, dtype):
    if states is None:
        return lax.full(shape, 0, dtype)
    return lax.squeeze(lax.slice_in_dim(states, number, number + 1, axis=0), (0,))


def _stack_states(states):
    parts = [lax.expand_dims(s, (0,)) for s in states]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, 0)


def cell(x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, /, mode: str = "LSTM"):
    """Return (h, c) of an LSTM cell, or h of another cell, after one step.

    Args:
        x: ``(N, I)`` or ``(I,)``.
        h: ``(N, H)`` or ``(H,)``; None is zeros.
        c: the same for an LSTM; None for another cell, or zeros.
        w_ih: ``(gates * H, I)``.
        w_hh: ``(gates * H, H)``.
        b_ih: ``(gates * H,)`` or None.
        b_hh: ``(gates * H,)`` or None.
        mode: as in `recurrent`.
    """
    shape = (*x.shape[:-1], w_hh.shape[1])
    h = lax.full(shape, 0, x.dtype) if h is None else h
    if mode == "LSTM" and c is None:
        c = lax.full(shape, 0, x.dtype)
    for name, array, width in (("input", x, w_ih.shape[1]), ("hx", h, w_hh.shape[1])):
        if array.shape[-1] != width:
            fail(
                "shape",
                f"{mode} cell",
                f"{name} {array.shape}",
                f"{name} has {width} features",
                "the sizes of the cell",
            )
    state = (h,) if c is None else (h, c)
    new = CELLS[mode](_linear(x, w_ih, b_ih), state, w_hh, b_hh)
    return new if c is not None else new[0]
