import oneflow as flow
from shown import fixed, show

batches = [fixed(4, 3, seed=i) for i in range(5)]
total, squares, seen = flow.zeros(3), flow.zeros(3), 0
for batch in batches:
    total += batch.sum(dim=0)
    squares += (batch**2).sum(dim=0)
    seen += batch.shape[0]
mean = total / seen
show("mean", mean)
show("variance", squares / seen - mean**2)
show("together", flow.cat(batches).var(dim=0, unbiased=False))
