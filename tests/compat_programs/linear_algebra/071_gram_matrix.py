import oneflow as flow
from shown import fixed, show

features = fixed(2, 3, 4, 4)
b, c, h, w = features.size()
flat = features.view(b, c, h * w)
gram = flat.bmm(flat.transpose(1, 2)) / (c * h * w)
show("gram", gram)
centred = flat - flat.mean(dim=2, keepdim=True)
show("covariance", centred @ centred.transpose(1, 2) / (h * w - 1))
