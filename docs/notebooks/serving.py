# %% [markdown]
# # Serve a model
#
# A language model answers several requests at once by continuous batching. Then an exported classifier is loaded
# without its Python code.

# %%
import matplotlib.pyplot as plt
import sbpjax as flow
from sbpjax import nn
from sbpjax.graph import TensorSpec
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.serving import GenerationEngine, Repository

flow.manual_seed(0)
model = GPT2(GPT2Config(vocab_size=61, n_positions=32, n_embd=32, n_layer=1, n_head=2)).eval()

# %% [markdown]
# ## Requests that share a batch
#
# Requests join and leave the running batch between decode steps. Keys and values are stored in blocks of one pool
# (paged attention). `rows` is the largest number of requests in the batch.


# %%
def serve(rows):
    """Return the answers to twelve requests of 2 to 13 tokens, and the engine's statistics."""
    with GenerationEngine(model, rows=rows, blocks=65, block=8, longest=32, chunk=8) as engine:
        streams = [engine.submit([k + 1, k + 2, k + 3], new_tokens=2 + k) for k in range(12)]
        return [list(stream) for stream in streams], engine.statistics()


alone, one_by_one = serve(rows=1)
shared, together = serve(rows=6)
together

# %% [markdown]
# The answers are the same, with fewer runs of the model:

# %%
assert alone == shared
plt.figure(figsize=(6, 2))
plt.barh(["6 rows", "1 row"], [together["steps"], one_by_one["steps"]])
plt.xlabel("steps for twelve requests")
plt.show()

# %% [markdown]
# To serve the same engine over OpenAI's HTTP interface, run one command in a terminal:
#
#     python -m sbpjax serve-openai my-llama --port 8080
#     curl localhost:8080/v1/completions -d '{"prompt": "Once", "max_tokens": 20}'

# %% [markdown]
# ## An exported graph
#
# `export` writes the program and the weights. The batch size is dynamic.


# %%
class Classify(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))

    def build(self, x):
        return self.model(x).softmax(-1)


classify = Classify()
classify.export("models/classifier/1/model", TensorSpec((1, 16)), dynamic_batch=True)
classify

# %% [markdown]
# `load_graph` loads the program. Here it runs on five rows and returns the probabilities of ten classes.

# %%
loaded = flow.load_graph("models/classifier/1/model")
rows = flow.randn(5, 16)
probabilities = loaded(rows)
plt.figure(figsize=(6, 2.5))
plt.imshow(probabilities.numpy(), aspect="auto")
plt.xlabel("class")
plt.ylabel("row")
plt.colorbar()
plt.show()

# %%
assert flow.allclose(probabilities, classify.model(rows).softmax(-1), atol=1e-6)
print(Repository("models").models[0].config())

# %% [markdown]
# ## Next steps
#
# * [Serve a model](../how_to/serve.md): Triton, KServe, HTTP, options, C++.
# * [Export a graph](../how_to/export.md) and [run it with another engine](../how_to/engines.md).
