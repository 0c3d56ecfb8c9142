"""PyTorch's place for these names: recurrent layers."""

from sbpjax.nn.rnn import GRU as GRU
from sbpjax.nn.rnn import LSTM as LSTM
from sbpjax.nn.rnn import RNN as RNN
from sbpjax.nn.rnn import GRUCell as GRUCell
from sbpjax.nn.rnn import LSTMCell as LSTMCell
from sbpjax.nn.rnn import RNNBase as RNNBase
from sbpjax.nn.rnn import RNNCell as RNNCell
from sbpjax.nn.rnn import RNNCellBase as RNNCellBase
from sbpjax.tensor import Tensor


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return the slices of a tensor along a dim in another order."""
    return tensor.index_select(dim, permutation)


_apply_permutation = apply_permutation
