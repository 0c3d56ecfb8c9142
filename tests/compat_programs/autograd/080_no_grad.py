import oneflow as flow
from shown import show

w = flow.tensor([1.0, 2.0], requires_grad=True)
with flow.no_grad():
    y = w * 2
    w.add_(1.0)
show("y", (y, y.requires_grad))
show("w", w.detach())

@flow.no_grad()
def evaluate(t):
    return t * 3

show("decorated", evaluate(w).requires_grad)
with flow.no_grad():
    with flow.enable_grad():
        show("inner", (w * 1).requires_grad)
with flow.set_grad_enabled(False):
    show("disabled", ((w * 1).requires_grad, flow.is_grad_enabled()))
with flow.inference_mode():
    show("inference", (w + 1).requires_grad)
