import oneflow as flow
from shown import show

x = flow.zeros(2, 3)
y = x.view(3, 2)
y[0, 0] = 5
show("x", x)
row = x[1]
row.fill_(2)
show("row", x)
t = x.t()
t.add_(1)
show("t", x)
d = x.detach()
d.zero_()
show("d", x)
