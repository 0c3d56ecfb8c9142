"""What type checkers find, each in the line that says so."""

import sbpjax as flow
from sbpjax import nn, optim

P = flow.placement("cpu", [0, 1])
model = nn.Linear(8)  # mistake: Argument missing for parameter "out_features"
x = flow.randn(16, 8).to_globl(P, flow.sbp.split(0))  # mistake: Cannot access attribute "to_globl"
y = flow.randn(16, 8).sum(dim="0")  # mistake: "Literal['0']" is not assignable
z = flow.softmaks(y)  # mistake: "softmaks" is not a known attribute
adam = optim.AdamW([y], lr="fast")  # mistake: "Literal['fast']" is not assignable
made = model(y, 3)  # mistake: Expected 1 positional argument


class Train(nn.Graph):
    def build(self, x: flow.Tensor) -> flow.Tensor:
        return x * 2


Train()("x")  # mistake: "Literal['x']" is not assignable
