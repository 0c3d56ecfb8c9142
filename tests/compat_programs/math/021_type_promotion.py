import oneflow as flow
from shown import show

i = flow.tensor([1, 2], dtype=flow.int32)
l = flow.tensor([3, 4], dtype=flow.int64)
f = flow.tensor([0.5, 1.5])
d = flow.tensor([0.25, 0.75], dtype=flow.float64)
b = flow.tensor([True, False])
show("i+l", i + l)
show("l+f", l + f)
show("f+d", f + d)
show("i/2", i / 2)
show("i*2.5", i * 2.5)
show("b+i", b + i)
show("l/i", l / i)
show("sum of ints", i.sum())
show("mean of floats", f.mean())
