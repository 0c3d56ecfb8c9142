# %% [markdown]
# # A Hugging Face model, sharded
#
# A Llama in Hugging Face's format is read into shards on eight devices, compared with PyTorch, trained, and written
# back. This needs `transformers` and PyTorch, which Colab contains.

# %%
import matplotlib.pyplot as plt
import sbpjax as flow
import torch
import transformers
from sbpjax import models, nn, optim

flow.env.set_cpu_devices(8)

# %% [markdown]
# ## The folder
#
# This is a tiny Llama with random weights. A folder with a Llama, Mistral, Qwen, GPT-2, BERT or T5 works the same way,
# such as one from `huggingface_hub.snapshot_download`.

# %%
torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
theirs = transformers.LlamaForCausalLM(config).eval()
theirs.save_pretrained("llama")

# %% [markdown]
# ## Into shards
#
# Four devices divide every parameter and the batch (`fsdp`), and two divide the layers (`tensor`). Each tensor
# goes from the file straight into its shards.

# %%
spec = models.Parallel(fsdp=4, tensor=2, device="cpu")
model = models.from_pretrained("llama", spec)
model

# %% [markdown]
# This picture shows the part of the weight `up` of the first block on each device:

# %%
flow.visualize(model.blocks[0].mlp.up.weight)

# %% [markdown]
# ## The same logits
#
# The largest difference between the sharded model and PyTorch's:

# %%
tokens = (torch.arange(17) * torch.arange(1, 9)[:, None]) % 256
inputs, targets = (spec.place(part.numpy()) for part in (tokens[:, :-1], tokens[:, 1:]))
with torch.no_grad(), flow.no_grad():
    expected = theirs(input_ids=tokens[:, :-1]).logits.numpy()
    difference = abs(model(inputs).numpy() - expected).max()
print(f"{difference:.1e}")

# %% [markdown]
# ## Training


# %%
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=3e-3))

    def build(self, tokens, targets):
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


train = Train()
losses = [train(inputs, targets).item() for _ in range(30)]
plt.figure(figsize=(6, 3))
plt.plot(losses)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %% [markdown]
# The communication of a step by purpose:

# %%
train.explain(check=False)

# %% [markdown]
# ## Generate, and write back
#
# The prompts count in steps of 1 and 2. `transformers` can read the folder that `save_pretrained` writes.

# %%
models.Generator(model, spec)([[1, 2, 3, 4], [2, 4, 6, 8]] * 2, new_tokens=6)

# %%
models.save_pretrained(model, "trained")
again = transformers.LlamaForCausalLM.from_pretrained("trained")
with torch.no_grad():
    print(f"loss in PyTorch {again(input_ids=tokens, labels=tokens).loss.item():.3f}, here {losses[-1]:.3f}")

# %% [markdown]
# ## Next steps
#
# * [Train a transformer](../how_to/models.md): the axes, and tables of layouts for your own models.
# * [A Hugging Face Llama](../tutorials/llama.md): PyTorch's code, unchanged, laid out by the planner.
# * [Serve a model](serving.ipynb).
