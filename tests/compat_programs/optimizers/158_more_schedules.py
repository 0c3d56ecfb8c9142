import oneflow as flow
import oneflow.nn as nn
from shown import show

def rates(make, steps=8):
    optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], lr=0.1)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found

lrs = flow.optim.lr_scheduler
show("multistep", rates(lambda o: lrs.MultiStepLR(o, milestones=[2, 5], gamma=0.1)))
show("exponential", rates(lambda o: lrs.ExponentialLR(o, gamma=0.9)))
show("lambda", rates(lambda o: lrs.LambdaLR(o, lr_lambda=lambda step: 0.95**step)))
show("polynomial", rates(lambda o: lrs.PolynomialLR(o, 6, end_learning_rate=0.001, power=2.0)))
show("linear", rates(lambda o: lrs.LinearLR(o, start_factor=0.5, total_iters=4)))
show("constant", rates(lambda o: lrs.ConstantLR(o, factor=0.25, total_iters=3)))
