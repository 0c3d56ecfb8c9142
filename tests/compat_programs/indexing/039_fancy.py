import oneflow as flow
from shown import fixed, show

x = fixed(4, 5)
rows = flow.tensor([0, 2, 3])
columns = flow.tensor([1, 1, 4])
show("rows", x[rows])
show("pairs", x[rows, columns])
show("list", x[[3, 0]])
show("mixed", x[rows, 1:3])
show("last", x[:, columns])
show("bool", x[x > 0.5])
show("row mask", x[flow.tensor([True, False, False, True])])
