import oneflow as flow
from shown import fixed, show

x = fixed(2, 2)
device = flow.device("cpu")
y = flow.ones(2, 2, device=device)
z = flow.zeros(2, 2, device="cpu")
show("device", (str(y.device.type), x.device == y.device, x.is_cuda))
show("to", x.to(device) + y.to("cpu"))
show("cpu", x.cpu())
show("available", flow.cuda.is_available())
copy = x.clone()
copy[0, 0] = 100
show("copy", (copy[0, 0].item(), x[0, 0].item()))
