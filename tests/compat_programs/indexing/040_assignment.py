import oneflow as flow
from shown import show

x = flow.zeros(3, 4)
x[0] = 1
x[1, 2] = 5.0
x[:, -1] = flow.tensor([7.0, 8.0, 9.0])
x[2, 0:2] = flow.tensor([3.0, 4.0])
show("x", x)
x[x > 6] = -1
show("masked", x)
x[flow.tensor([0, 2])] = 0.5
show("rows", x)
x[1:] += 10
show("added", x)
