import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

layer = nn.Linear(3, 3, bias=False)
fill(layer)

class Lookup(nn.Graph):
    def __init__(self):
        super().__init__()
        self.layer = layer

    def build(self, batch, scale, pair=None):
        h = self.layer(batch["x"]) * scale
        if pair is not None:
            h = h + pair[0] - pair[1]
        return {"h": h, "stats": (h.mean(), [h.max(), h.min()])}

graph = Lookup()
out = graph({"x": fixed(2, 3)}, flow.tensor(2.0), pair=(flow.ones(2, 3), flow.zeros(2, 3)))
show("keys", sorted(out.keys()))
show("h", out["h"])
show("stats", [out["stats"][0], out["stats"][1][0], out["stats"][1][1]])
