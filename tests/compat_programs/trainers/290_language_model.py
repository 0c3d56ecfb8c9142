import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, show

class TinyLM(nn.Module):
    def __init__(self, vocabulary, width, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", flow.tril(flow.ones(length, length)))

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.positions(flow.arange(n))
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        scores = (q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:n, :n] == 0, -1e9)
        x = x + self.proj(flow.softmax(scores, dim=-1) @ v)
        return self.head(x + self.mlp(self.norm2(x)))

text = flow.tensor([(i * i + 3) % 11 for i in range(33)])
model = TinyLM(11, 8, 16)
fill(model)
optimizer = flow.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
for step in range(4):
    x = flow.stack([text[i : i + 16] for i in (0, 8, 16)])
    y = flow.stack([text[i + 1 : i + 17] for i in (0, 8, 16)])
    loss = F.cross_entropy(model(x).reshape(-1, 11), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    show(f"step {step}", (loss, norm))
model.eval()
ids = text[:4].unsqueeze(0)
with flow.no_grad():
    for _ in range(3):
        ids = flow.cat([ids, model(ids)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
show("generated", ids.shape)
