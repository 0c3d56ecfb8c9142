import oneflow as flow
from shown import show

x = flow.tensor([1.7, -2.3, 3.0])
show("int", x.int())
show("long", x.long())
show("double", x.double())
show("half", x.half())
show("bool", x.bool())
show("to", x.to(flow.int32))
show("cast", flow.cast(x, flow.int8))
show("type_as", flow.tensor([1]).type_as(x))
show("type", x.type(flow.float64))
show("byte", flow.tensor([1.0, 200.0]).to(flow.uint8))
show("float", flow.tensor([1, 2]).float())
