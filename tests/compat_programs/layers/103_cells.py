import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

cell = nn.LSTMCell(3, 4)
fill(cell)
h, c = flow.zeros(2, 4), flow.zeros(2, 4)
x = fixed(6, 2, 3)
for t in range(6):
    h, c = cell(x[t], (h, c))
show("h", h)
show("c", c)
gru = nn.GRUCell(3, 2)
fill(gru, seed=9)
show("gru", gru(x[0], flow.zeros(2, 2)))
