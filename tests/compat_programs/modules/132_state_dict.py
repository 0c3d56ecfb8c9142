import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
fill(source)
source(fixed(5, 3))
target = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
target.load_state_dict(source.state_dict())
source.eval()
target.eval()
show("same", flow.allclose(source(fixed(2, 3)), target(fixed(2, 3))))
show("keys", list(target.state_dict().keys()))
show("mean", target[1].running_mean)
