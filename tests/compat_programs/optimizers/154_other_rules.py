import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

def trajectory(make):
    w = nn.Parameter(fixed(3))
    optimizer = make([w])
    for step in range(5):
        optimizer.zero_grad()
        ((w - fixed(3, seed=step + 1)) ** 2).sum().backward()
        optimizer.step()
    return w.detach()

show("adagrad", trajectory(lambda p: flow.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.1)))
show("rmsprop", trajectory(lambda p: flow.optim.RMSprop(p, lr=0.01, alpha=0.9)))
show("centered", trajectory(lambda p: flow.optim.RMSprop(p, lr=0.01, centered=True)))
show("adadelta", trajectory(lambda p: flow.optim.Adadelta(p, lr=1.0, rho=0.9)))
show("lamb", trajectory(lambda p: flow.optim.LAMB(p, lr=0.01, weight_decay=0.01)))
