"""A first quarter of an hour with an installed sbpjax, as a script without pytest: `make smoke`.

Trains a graph on four virtual CPU devices, saves and loads its state, and looks at what a wheel may lack.
"""

import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path

os.environ.setdefault("SBPJAX_CPU_DEVICES", "4")
os.environ.setdefault("NPROC", "32")

import sbpjax as flow
from sbpjax import errors, nn
from sbpjax._core import naming

home = Path(flow.__file__).resolve().parent
assert home.is_relative_to(Path(sys.prefix).resolve()), f"not the installed package: {home}"
assert metadata.version("sbpjax") == flow.__version__ == naming.VERSION
assert metadata.metadata("sbpjax")["License-Expression"] == "Apache-2.0"
assert (home / "py.typed").is_file() and (home / "nn" / "__init__.pyi").is_file()
for name in ("explanation/security.md", "reference/api_coverage.md"):
    assert Path(errors.page(name)) == home / "docs" / name and Path(errors.page(name)).is_file()


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.AdamW(model.parameters(), lr=0.05))

    def build(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        return loss


grid = flow.placement("cpu", [[0, 1], [2, 3]])
flow.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1)).to_global(grid, ["B", "B"])
x = flow.randn(16, 8, placement=grid, sbp=["S0", "B"])
y = x.sum(1, keepdim=True)
step = Train(model)
first, *_, last = [step(x, y).item() for _ in range(20)]
assert last < first / 2, (first, last)
assert "stablehlo.dot_general" in step.stablehlo() and step.hlo().startswith("HloModule")

with tempfile.TemporaryDirectory() as folder:
    flow.save(model.state_dict(), f"{folder}/state")
    model.load_state_dict(flow.load(f"{folder}/state", grid))
    local = nn.Linear(8, 1)
    predict = flow.compile(local)
    expected = predict(x.to_local())
    flow.checkpoint.save_safetensors(local.state_dict(), f"{folder}/local.safetensors")
    local.load_state_dict(flow.load(f"{folder}/local.safetensors"))
    assert (predict(x.to_local()) == expected).all().item()

assert flow.pipeline.linear and flow.testing.assert_close and flow.run.main and flow.distributions.Normal
print("sbpjax", flow.__version__, "works on Python", sys.version.split()[0])
