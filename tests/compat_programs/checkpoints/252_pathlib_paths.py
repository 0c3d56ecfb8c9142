import pathlib
import tempfile

import oneflow as flow
from oneflow import nn
from shown import fill, show

model = nn.Linear(2, 2)
fill(model)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "run" / "epoch_1"
    path.parent.mkdir()
    flow.save(model.state_dict(), path)
    state = flow.load(path)
    show("exists", path.exists())
show("weight", state["weight"])
