import oneflow as flow
from oneflow.nn import functional as F
from shown import fixed, show

table = fixed(6, 3)
ids = flow.tensor([[1, 5, 0], [2, 2, 3]])
show("lookup", table[ids])
show("functional", F.embedding(ids, table))
show("gather", flow.gather(table, 0, ids.reshape(-1, 1).expand(-1, 3)))
grads = flow.zeros(6, 3)
grads.index_add_(0, ids.reshape(-1), flow.ones(6, 3))
show("used", grads[:, 0])
