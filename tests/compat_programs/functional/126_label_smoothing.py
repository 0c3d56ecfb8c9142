import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from shown import fixed, show

class LabelSmoothing(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x, target):
        logprobs = F.log_softmax(x, dim=-1)
        nll = -logprobs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        smooth = -logprobs.mean(dim=-1)
        return ((1.0 - self.smoothing) * nll + self.smoothing * smooth).mean()

x = fixed(4, 5)
x.requires_grad = True
loss = LabelSmoothing()(x, flow.tensor([1, 0, 4, 2]))
loss.backward()
show("loss", loss)
show("grad", x.grad)
