import numpy as np
import oneflow as flow
from shown import fixed, show

def function(t):
    return (flow.sin(t) * t**2).sum()

x = fixed(5).double()
x.requires_grad = True
function(x).backward()
numeric = []
for i in range(5):
    step = flow.zeros(5, dtype=flow.float64)
    step[i] = 1e-4
    with flow.no_grad():
        numeric.append(((function(x + step) - function(x - step)) / 2e-4).item())
show("grad", x.grad)
show("close", np.allclose(x.grad.numpy(), numeric, atol=1e-5))
