import oneflow as flow
from shown import fixed, show

values = fixed(10)
average = flow.zeros(())
for step in range(10):
    average = 0.9 * average + 0.1 * values[step]
show("average", average)
show("corrected", average / (1 - 0.9**10))
momentum = flow.zeros(10)
momentum.mul_(0.9).add_(values, alpha=0.1)
show("momentum", momentum)
second = flow.zeros(10)
second.mul_(0.99).addcmul_(values, values, value=0.01)
show("second", second)
