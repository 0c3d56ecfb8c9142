import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

lstm = nn.LSTM(input_size=3, hidden_size=4, num_layers=2, batch_first=True)
fill(lstm)
x = fixed(2, 5, 3)
out, (h, c) = lstm(x)
show("out", out)
show("h", h)
show("c", c.shape)
again, _ = lstm(x, (h, c))
show("again", again.sum(dim=-1))
out.sum().backward()
show("grad", lstm.weight_ih_l0.grad.sum(dim=1))
