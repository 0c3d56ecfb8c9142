# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
rank = flow.env.get_rank()
model = nn.Linear(3, 4)
fill(model)
model.eval()
correct = 0
with flow.no_grad():
    for step in range(2):
        x, y = fixed(2, 3, seed=step * 4 + rank), flow.tensor([rank % 4, step])
        prediction = model(x).to_global(P, flow.sbp.split(0)).to_global(sbp=flow.sbp.broadcast).to_local()
        label = y.to_global(P, flow.sbp.split(0)).to_global(sbp=flow.sbp.broadcast).to_local()
        correct += (prediction.argmax(dim=1) == label).sum().item()
        show(f"predictions {step}", prediction)
show("correct", correct)
