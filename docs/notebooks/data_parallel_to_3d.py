# %% [markdown]
# # From data parallel to 3-D
#
# One small transformer on eight devices: data parallel, ZeRO, tensor parallel, and data × tensor × pipeline. The model
# and the losses stay the same; memory and communication change.

# %%
import matplotlib.pyplot as plt
import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.models.llama import Llama, LlamaConfig

flow.env.set_cpu_devices(8)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)

# %% [markdown]
# The text consists of eight sequences that count in steps of 1, 2, ..., 8.

# %%
text = (flow.arange(17) * flow.arange(1, 9)[:, None]) % 64
text

# %% [markdown]
# A training step for any layout. `Parallel` gives the number of devices for each kind of parallelism, and `parallelize`
# lays out the parameters by the model's table of layouts.


# %%
class Train(nn.Graph):
    def __init__(self, spec, zero=0):
        super().__init__()
        flow.manual_seed(0)
        self.spec, self.model = spec, models.parallelize(Llama(config), spec)
        self.add_optimizer(optim.AdamW(self.model.parameters(), lr=5e-3))
        if zero:
            self.config.enable_zero(True, stage=zero, shard_min_size=1)
        if spec.pipeline > 1:
            self.config.set_gradient_accumulation_steps(4)

    def build(self, tokens, targets):
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss

    def batch(self):
        return self.spec.place(text[:, :-1]), self.spec.place(text[:, 1:], -1)


def losses(train, steps=10):
    return [train(*train.batch()).mean().item() for _ in range(steps)]


# %% [markdown]
# ## Data parallel
#
# Every device has a copy of the model and one of the eight sequences. The gradients are partial sums, and the update
# needs the sums.

# %%
data = Train(models.Parallel(data=8, device="cpu"))
found = {"data": losses(data)}
data.explain(check=False)

# %%
data.memory(*data.batch(), compiled=False)

# %% [markdown]
# ## ZeRO
#
# With `enable_zero`, each device keeps an eighth of the optimizer state. The all-reduce becomes a reduce-scatter and an
# all-gather, which move the same number of bytes.

# %%
zero = Train(models.Parallel(data=8, device="cpu"), zero=1)
found["ZeRO 1"] = losses(zero)
zero.explain(check=False)

# %% [markdown]
# ## Data × tensor
#
# Each layer is divided over four devices, and each batch over two.

# %%
tensor = Train(models.Parallel(data=2, tensor=4, device="cpu"))
found["data × tensor"] = losses(tensor)
tensor.model.blocks[0].mlp.up.weight

# %%
tensor.explain(check=False)

# %% [markdown]
# ## Data × tensor × pipeline
#
# The first block is on four devices, the second on the other four. Both work at once, on different micro-batches.

# %%
cube = Train(models.Parallel(data=2, tensor=2, pipeline=2, device="cpu"))
found["data × tensor × pipeline"] = losses(cube)
cube.pipeline_report(*cube.batch())

# %% [markdown]
# ## Identical loss curves
#
# Values do not depend on the layout, so the four curves coincide.

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for width, (name, values) in zip((9, 6, 3, 1), found.items()):
    axes.plot(values, label=name, linewidth=width)
axes.set(xlabel="step", ylabel="loss")
axes.legend()
plt.show()

# %% [markdown]
# ## Next steps
#
# * [Auto parallelism](auto_parallel.ipynb): let the planner choose the layouts.
# * [Fit a larger model](../how_to/larger_models.md): the memory that each option saves, and its cost.
