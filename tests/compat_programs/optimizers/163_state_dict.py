import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

def train(model, optimizer, seeds):
    for seed in seeds:
        optimizer.zero_grad()
        model(fixed(4, 3, seed=seed)).pow(2).mean().backward()
        optimizer.step()

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.Adam(model.parameters(), lr=0.05)
train(model, optimizer, range(3))
state, weights = optimizer.state_dict(), {k: v.clone() for k, v in model.state_dict().items()}
train(model, optimizer, range(3, 6))
other = nn.Linear(3, 2)
other.load_state_dict(weights)
resumed = flow.optim.Adam(other.parameters(), lr=0.05)
resumed.load_state_dict(state)
train(other, resumed, range(3, 6))
show("same", flow.allclose(model.weight, other.weight, atol=1e-6))
show("weight", other.weight.detach())
show("keys", sorted(state.keys()))
