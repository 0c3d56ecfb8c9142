"""PyTorch's place for these names: recurrent layers."""

from sbpjax.nn.rnn import GRU as GRU
from sbpjax.nn.rnn import LSTM as LSTM
from sbpjax.nn.rnn import RNN as RNN
from sbpjax.nn.rnn import GRUCell as GRUCell
from sbpjax.nn.rnn import LSTMCell as LSTMCell
from sbpjax.nn.rnn import RNNBase as RNNBase
from sbpjax.nn.rnn import RNNCell as RNNCell
from sbpjax.nn.rnn import RNNCellBase as RNNCellBase
