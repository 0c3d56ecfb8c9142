"""Recurrent layers and cells: `RNN`, `LSTM`, `GRU`, over one loop that is compiled once for any length.

    lstm = nn.LSTM(16, 32, num_layers=2, bidirectional=True, batch_first=True)
    out, (h, c) = lstm(x)                        # x (N, T, 16), out (N, T, 64), h and c (4, N, 32)

`_core.ops.layers.rnn` holds the loop. A split of the batch needs no communication inside it.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from sbpjax._core import naming
from sbpjax._core.functions.table.texts import InheritedDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.ops.layers import rnn as ops
from sbpjax._core.runtime import sizes
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.dispatch import run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle.mode import mode
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter
from sbpjax.nn.utils import rnn as packing

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Base of stacked recurrent layers.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        input_size: I, the features of the input.
        hidden_size: H, the features of the state.
        num_layers: the number of layers.
        bias: whether there are biases.
        batch_first: inputs and outputs are `(N, T, ...)` rather than `(T, N, ...)`.
        dropout: probability of a zero between layers, in training.
        bidirectional: each layer also runs from the end.
        proj_size: project the state of an LSTM to this size, if not 0.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self._check(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        directions = 2 if bidirectional else 1
        parameters = directions * (2 + 2 * bool(bias) + bool(proj_size))
        sizes.check_layers(f"{type(self).__name__}(...)", num_layers, parameters)
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else width * directions
            for end in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, features), "weight_hh": (gates, width)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{end}" for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    self.register_parameter(name, parameter(*shape, device=device, dtype=dtype))
                self._all_weights.append(names)
        self.reset_parameters()

    def _check(self, mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
        operation = f"{type(self).__name__}(...)"
        if mode not in _GATES:
            fail("value", operation, f"mode={mode!r}", f"Unrecognized RNN mode: {mode}", f"one of {list(_GATES)}")
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            rule = "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            fail("value", operation, f"dropout={dropout!r}", rule, "dropout=0.1")
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            )
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                rule = f"{name} should be of type bool, got: {type(value).__name__}"
                fail("type", operation, f"{name}={value!r}", rule, f"{name}=True")
        if not isinstance(hidden_size, int):
            fail(
                "type", operation, f"hidden_size={hidden_size!r}", "hidden_size should be of type int", "hidden_size=32"
            )
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                fail("value", operation, f"{name}={value}", f"{name} must be greater than zero", f"{name}=1")
        if proj_size < 0 or proj_size >= hidden_size:
            rule = "proj_size should be a positive integer smaller than hidden_size, or zero to disable projections"
            fail("value", operation, f"proj_size={proj_size}, hidden_size={hidden_size}", rule, "proj_size=0")
        if proj_size and mode != "LSTM":
            fail(
                "value", operation, f"proj_size={proj_size}", "proj_size argument is only supported for LSTM", "nn.LSTM"
            )

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[Any]]:
        """Parameters, one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: weights are not copied for a kernel here."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the outputs of the last layer, and the state after the last step of every layer.

        Args:
            input: `(T, N, I)`, `(N, T, I)` with `batch_first`, `(T, I)` for one sequence, or a `PackedSequence`.
            hx: the state before the first step: `(layers * directions, N, H)`, for an LSTM a pair `(h, c)`; None is
                zeros.
        """
        states = (hx if self.mode == "LSTM" else (hx,)) if hx is not None else ()
        if isinstance(input, packing.PackedSequence):
            return self._run_packed(input, states)
        if input.ndim not in (2, 3):
            rule = f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            fail("value", f"{type(self).__name__}(x)", f"shape {list(input.shape)}", rule, "x of (T, N, I)")
        single = input.ndim == 2
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            states = tuple(self._add_batch_dim(s) for s in states)
        rows = input.shape[0 if self.batch_first else 1]
        self._check_input(input, states, rows)
        out, *last = self._recur(input, None, states, self.batch_first)
        if single:
            out = out.squeeze(0 if self.batch_first else 1)
            last = [s.squeeze(1) for s in last]
        return out, self._state(last)

    def _state(self, last: Any) -> Any:
        return tuple(last) if self.mode == "LSTM" else last[0]

    def _add_batch_dim(self, state: Tensor) -> Tensor:
        if state.ndim != 2:
            rule = f"For unbatched 2-D input, hx should also be 2-D but got {state.ndim}-D tensor"
            fail("shape", f"{type(self).__name__}(x, hx)", f"hx {tuple(state.shape)}", rule, "hx.squeeze(1)")
        return state.unsqueeze(1)

    def _run_packed(self, input: packing.PackedSequence, states: tuple) -> tuple[Any, Any]:
        """Run on padded sequences with their lengths, skipping the padding."""
        order, back = input.sorted_indices, input.unsorted_indices
        counts = packing.lengths_of(input.batch_sizes)
        states = tuple(s if order is None else s.index_select(1, order) for s in states)
        padded = packing.pad_sorted(input)
        self._check_input(padded, states, len(counts))
        out, *last = self._recur(padded, packing._index_tensor_like(counts, padded), states, False)
        last = [s if back is None else s.index_select(1, back) for s in last]
        return packing.packed_like(out, input), self._state(last)

    def _recur(self, input: Tensor, lengths: Tensor | None, states: tuple, batch_first: bool) -> tuple[Tensor, ...]:
        dropout = self.dropout if self.training and self.num_layers > 1 else 0.0
        static = (
            ("mode", self.mode),
            ("num_layers", self.num_layers),
            ("bidirectional", bool(self.bidirectional)),
            ("has_biases", bool(self.bias)),
            ("batch_first", bool(batch_first)),
            ("projects", self.proj_size > 0),
            ("dropout_p", dropout),
        )
        key = default_generator.key() if dropout else None
        h, c = (*states, None, None)[:2]
        weights = [getattr(self, name) for names in self._all_weights for name in names]
        return run(op_of(ops.recurrent, static), (input, lengths, key, h, c, *weights))

    def _check_input(self, input: Tensor, states: tuple, rows: int) -> None:
        operation = f"{type(self).__name__}(x, hx)"
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and mode.autocast is None and not naming.is_oneflow():
            rule = f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype})"
            fix = f"x.to({weight.dtype}), or model.to({input.dtype})"
            fail("value", operation, f"input {tuple(input.shape)}", rule, fix)
        if input.shape[-1] != self.input_size:
            rule = f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            fail(
                "shape",
                operation,
                f"input {tuple(input.shape)}",
                rule,
                f"nn.{type(self).__name__}({input.shape[-1]}, ...)",
            )
        count = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)
        for i, (state, width) in enumerate(zip(states, widths)):
            if tuple(state.shape) != (count, rows, width):
                rule = f"Expected hidden[{i}] size {(count, rows, width)}, got {list(state.shape)}"
                fail("shape", operation, f"input {tuple(input.shape)}", rule, f"sbpjax.zeros({count}, {rows}, {width})")

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """Elman layers: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu.

    Args:
        input_size: I.
        hidden_size: H.
        num_layers: the number of layers.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: whether there are biases.
        batch_first: inputs and outputs are `(N, T, ...)`.
        dropout: probability of a zero between layers, in training.
        bidirectional: each layer also runs from the end.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            rule = f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            fail("value", "RNN(...)", f"nonlinearity={nonlinearity!r}", rule, "nonlinearity='tanh'")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: an input, a forget and an output gate on a cell.

    Returns:
        The outputs ``(T, N, H)`` and the last state of ``h`` and ``c``; H is doubled where `bidirectional`. A split of
        the batch N stays.

    Example:
        >>> y, (h, c) = flow.nn.LSTM(4, 6, num_layers=2)(flow.ones(5, 3, 4))
        >>> y.shape, h.shape, c.shape
        (sbpjax.Size([5, 3, 6]), sbpjax.Size([2, 3, 6]), sbpjax.Size([2, 3, 6]))
    """

    __doc__ = InheritedDocstring(__doc__, RNNBase)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units: a reset and an update gate on the state.

    Returns:
        The outputs ``(T, N, H)`` and the last state; H is doubled where `bidirectional`. A split of the batch N stays.

    Example:
        >>> y, h = flow.nn.GRU(4, 6, batch_first=True)(flow.ones(3, 5, 4))
        >>> y.shape, h.shape
        (sbpjax.Size([3, 5, 6]), sbpjax.Size([1, 3, 6]))
    """

    __doc__ = InheritedDocstring(__doc__, RNNBase)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class RNNCellBase(Module):
    """One step of a recurrent layer.

    Args:
        input_size: I, the features of the input.
        hidden_size: H, the features of the state.
        bias: whether there are biases.
        num_chunks: the number of gates.
        device: where the parameters are made.
        dtype: their dtype.
    """

    _mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        options = {"device": device, "dtype": dtype}
        self.weight_ih = parameter(num_chunks * hidden_size, input_size, **options)
        self.weight_hh = parameter(num_chunks * hidden_size, hidden_size, **options)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter(num_chunks * hidden_size, **options) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, input: Tensor, h: Tensor | None, c: Tensor | None = None) -> Any:
        operation = f"{type(self).__name__}(x, hx)"
        for name, x in (("input", input), ("hx", h)):
            if x is not None and x.ndim not in (1, 2):
                rule = f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {x.ndim}D instead"
                fail("value", operation, f"{name} {tuple(x.shape)}", rule, "x of (N, I)")
        for name, x in (("hx", h), ("cx", c)):
            if x is not None and x.shape[:-1] != input.shape[:-1]:
                rule = "Input batch size doesn't match hidden batch size"
                fail("shape", operation, f"input {tuple(input.shape)}, {name} {tuple(x.shape)}", rule, "hx of (N, H)")
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return run(op_of(ops.cell, (("mode", self._mode),)), (input, h, c, *weights))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One Elman step.

    Args:
        input_size: I.
        hidden_size: H.
        bias: whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state `(N, H)` after a step from `hx`, zeros by default."""
        if self.nonlinearity not in ("tanh", "relu"):
            rule = f"Unknown nonlinearity: {self.nonlinearity}"
            fail("shape", "RNNCell(x)", f"nonlinearity={self.nonlinearity!r}", rule, "nonlinearity='tanh'")
        self._mode = f"RNN_{self.nonlinearity.upper()}"
        return self._step(input, hx)


class LSTMCell(RNNCellBase):
    """One LSTM step.

    Args:
        input_size: I.
        hidden_size: H.
        bias: whether there are biases.
        device: where the parameters are made.
        dtype: their dtype.
    """

    _mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return `(h, c)` after a step from `hx`, zeros by default."""
        h, c = hx if hx is not None else (None, None)
        return self._step(input, h, c)


class GRUCell(RNNCellBase):
    """One GRU step.

    Args:
        input_size: I.
        hidden_size: H.
        bias: whether there are biases.
        device: where the parameters are made.
        dtype: their dtype.
    """

    _mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state `(N, H)` after a step from `hx`, zeros by default."""
        return self._step(input, hx)
