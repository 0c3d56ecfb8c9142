import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

gru = nn.GRU(3, 4, bidirectional=True)
fill(gru)
x = fixed(5, 2, 3)
out, h = gru(x)
show("out", out)
show("h", h)
rnn = nn.RNN(3, 2, nonlinearity="relu")
fill(rnn, seed=7)
out, h = rnn(x)
show("rnn", out.sum(dim=0))
show("names", [n for n, _ in rnn.named_parameters()])
