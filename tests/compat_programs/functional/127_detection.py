import oneflow as flow
from shown import show

boxes = flow.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0], [21.0, 20.0, 31.0, 31.0]])
scores = flow.tensor([0.9, 0.8, 0.7, 0.95])
show("order", scores.argsort(descending=True))
area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
low = flow.maximum(boxes[:, None, :2], boxes[None, :, :2])
high = flow.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
inter = (high - low).clamp(min=0).prod(dim=2)
show("iou", inter / (area[:, None] + area[None] - inter))
