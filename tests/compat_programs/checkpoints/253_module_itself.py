import tempfile

import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
fill(model)
model.eval()
with tempfile.TemporaryDirectory() as folder:
    flow.save(model, folder + "/module")
    loaded = flow.load(folder + "/module")
show("out", loaded(fixed(2, 2)))
show("same", flow.allclose(loaded(fixed(2, 2)), model(fixed(2, 2))))
show("mode", loaded.training)
