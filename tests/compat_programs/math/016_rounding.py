import oneflow as flow
from shown import show

x = flow.tensor([-2.5, -1.4, -0.5, 0.0, 0.5, 1.5, 2.6])
show("floor", flow.floor(x))
show("ceil", flow.ceil(x))
show("round", flow.round(x))
show("trunc", flow.trunc(x))
show("sign", flow.sign(x))
show("floor_divide", flow.floor_divide(x, 2))
show("fmod", flow.fmod(x, 2))
show("//", x // 2)
show("%", x % 2)
i = flow.tensor([7, -7, 8])
show("int //", i // 3)
show("int %", i % 3)
