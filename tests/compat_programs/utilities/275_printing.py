import oneflow as flow
import oneflow.nn as nn
from shown import show

text = str(flow.tensor([[1.0, 2.0], [3.0, 4.0]]))
show("tensor", text.startswith("tensor(") and "float32" in text)
show("ints", "dtype" in repr(flow.tensor([1, 2])))
show("requires", "requires_grad=True" in str(flow.ones(1, requires_grad=True)))
show("size", str(flow.ones(2, 3).shape).split(".")[-1])
show("linear", str(nn.Linear(2, 3)))
show("conv", str(nn.Conv2d(1, 2, 3, padding=1)))
show("norm", str(nn.BatchNorm2d(3)))
show("graph", type(nn.Graph()).__name__ == "Graph")
