# %% [markdown]
# # Auto parallelism and its report
#
# The model is written for one device. The planner chooses a layout for every parameter, for the batch and for the
# optimizer state. Its report compares the plan with the usual strategies before anything runs.

# %%
import matplotlib.pyplot as plt
import sbpjax as flow
from sbpjax import nn, optim

flow.env.set_cpu_devices(8)
flow.manual_seed(0)
devices = flow.placement("cpu", range(8))
devices


# %%
class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 512), nn.Linear(512, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


model = nn.Sequential(Block(), Block(), nn.Linear(32, 1))
model

# %% [markdown]
# `enable_auto_parallel` makes the layouts of the parameters free variables of the plan.


# %%
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=3e-3))
        self.config.enable_auto_parallel(True, placement=devices)

    def build(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        return loss


train = Train()
x = flow.randn(64, 32)
y = x[:, :4].sum(1, keepdim=True).sin()

# %% [markdown]
# ## The report
#
# The report compares the chosen plan with data parallelism, ZeRO, FSDP and tensor parallelism, and then lists the
# layout of each parameter.

# %%
report = train.auto_parallel_report(x, y)
report

# %% [markdown]
# To find the cost of copying the wide weights to all devices, `sensitivity` plans again with that one layout fixed:

# %%
train.sensitivity("model.*.up.weight", "B")

# %% [markdown]
# ## The run
#
# The first call compiles the plan. Arguments and loss are local tensors; the parameters are now global.

# %%
losses = [train(x, y).item() for _ in range(60)]
plt.figure(figsize=(6, 3))
plt.plot(losses)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %%
flow.visualize(model[0].up.weight)

# %%
train.explain(check=False)

# %% [markdown]
# ## Next steps
#
# * [Let the planner choose the layouts](../how_to/auto_parallel.md): options, grids of several axes, plan files.
# * [Choices of auto parallelism](../explanation/auto.md): prices and limits.
