import oneflow as flow
from oneflow.nn import functional as F
from shown import show

labels = flow.tensor([1, 0, 3, 2], dtype=flow.int64)
hot = F.one_hot(labels, num_classes=4)
show("hot", hot)
smooth = hot.to(flow.float32) * 0.9 + 0.1 / 4
show("smooth", smooth)
show("argmax", smooth.argmax(dim=1))
show("on off", F.one_hot(labels, 5, on_value=2, off_value=-1))
