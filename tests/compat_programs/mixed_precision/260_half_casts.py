import oneflow as flow
from shown import fixed, show

x = fixed(3, 3)
h = x.half()
show("half", h)
show("back", h.float())
show("bfloat", x.to(flow.bfloat16).float())
w = x.clone()
w.requires_grad = True
w.half().float().pow(2).sum().backward()
show("grad", w.grad)
show("finfo", (flow.finfo(flow.float16).max, flow.finfo(flow.float16).eps))
