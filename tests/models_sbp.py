"""A small GPT with sbps inside its layers, as OneFlow's users write them: data × tensor × pipeline parallel.

Every layer makes its parameters as global tensors on the placement of its stage, converts its inputs where it needs
them in another sbp, and asks for the sbp of gradients where Megatron's pairs of layers do. `Layout` is what such
libraries keep as their "distributed environment": a grid of ranks per stage, and sbps written as (data, tensor).
"""

import math

import numpy as np

import sbpjax as flow
from sbpjax import nn

S, B = flow.sbp.split, flow.sbp.broadcast


class Layout:
    """Which ranks a stage runs on, and how a (data, tensor) pair of sbps reads there.

    Args:
        stages: of each stage the ranks: a grid of data × tensor, or a line of one of them.
        line: which of the two a line is, ``"data"`` or ``"tensor"``.
    """

    def __init__(self, stages, line="data"):
        self.places = [flow.placement("cpu", ranks) for ranks in stages]
        self.line = line

    def place(self, stage):
        return self.places[stage]

    def stage_of(self, layer, layers):
        return layer * len(self.places) // layers

    def nd(self, data, tensor):
        if np.ndim(self.places[0].ranks) == 2:
            return [data, tensor]
        return [data if self.line == "data" else tensor]


def same(a, b):
    """Return whether two nd-sbps are equal, entry by entry."""
    return len(a) == len(b) and all(p == q for p, q in zip(a, b))


class Linear(nn.Module):
    """`x @ weight + bias`, with the weight split by columns, by rows, or whole."""

    def __init__(self, layout, n_in, n_out, parallel="data", stage=0):
        super().__init__()
        self.layout = layout
        weight, bias = {"col": (S(1), S(0)), "row": (S(0), B), "data": (B, B)}[parallel]
        where = {"dtype": flow.float32, "placement": layout.place(stage)}
        self.weight = nn.Parameter(flow.empty((n_in, n_out), sbp=layout.nd(B, weight), **where))
        self.bias = nn.Parameter(flow.empty((n_out,), sbp=layout.nd(B, bias), **where))
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        nd, last = self.layout.nd, x.ndim - 1
        if x.placement != self.weight.placement:
            x = x.to_global(placement=self.weight.placement)
        if same(self.weight.sbp, nd(B, S(1))):
            x = x.to_global(grad_sbp=x.sbp)  # the partial sums of the columns are added here
            x = flow.matmul(x, self.weight)
        elif same(self.weight.sbp, nd(B, S(0))):
            x = x.to_global(sbp=nd(S(0), S(last)), grad_sbp=nd(S(0), S(last)))
            x = flow.matmul(x, self.weight)
            x = x.to_global(sbp=nd(S(0), B))
        else:
            x = x.to_global(grad_sbp=x.sbp)
            weight = self.weight.to_global(grad_sbp=self.weight.sbp)
            x = flow.matmul(x, weight)
        return x + self.bias


class LayerNorm(nn.Module):
    """Layer norm over the last dim, its weights whole on every rank of its stage."""

    def __init__(self, layout, width, stage=0):
        super().__init__()
        where = {"placement": layout.place(stage), "sbp": layout.nd(B, B)}
        self.weight = nn.Parameter(flow.ones((width,), dtype=flow.float32, **where))
        self.bias = nn.Parameter(flow.zeros((width,), dtype=flow.float32, **where))
        self.width = width

    def forward(self, x):
        assert x.sbp is not None and len(x.sbp) == len(self.weight.sbp)
        x = x.to_global(placement=self.weight.placement, grad_sbp=x.sbp)
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean
        scale = flow.rsqrt((centred * centred).mean(dim=-1, keepdim=True) + 1e-5)
        return centred * scale * self.weight + self.bias


class VocabEmbedding(nn.Module):
    """An embedding whose rows are split over the tensor-parallel ranks."""

    def __init__(self, layout, count, width, stage=0):
        super().__init__()
        self.layout = layout
        self.weight = nn.Parameter(
            flow.empty((count, width), dtype=flow.float32, placement=layout.place(stage), sbp=layout.nd(B, S(0)))
        )
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, ids):
        weight = self.weight.to_global(sbp=self.layout.nd(B, S(0)), grad_sbp=self.layout.nd(B, S(0)))
        x = flow._C.gather(weight, ids, axis=0)
        return x.to_global(sbp=self.layout.nd(S(0), B))


class Attention(nn.Module):
    """Causal self-attention with its heads split over the tensor-parallel ranks."""

    def __init__(self, layout, width, heads, stage=0):
        super().__init__()
        self.layout, self.heads, self.size = layout, heads, width // heads
        self.qkv = Linear(layout, width, 3 * width, "col", stage)
        self.out = Linear(layout, width, width, "row", stage)

    def forward(self, x, mask):
        batch, length, width = x.size()
        x = x.to_global(sbp=self.layout.nd(S(0), B))
        qkv = self.qkv(x).view(batch, length, self.heads, 3 * self.size).permute(0, 2, 1, 3)
        q, k, v = flow.chunk(qkv, chunks=3, dim=-1)
        scores = flow.matmul(q, k.transpose(-1, -2)) * (1.0 / math.sqrt(self.size))
        scores = flow.where(mask, scores, flow.zeros_like(scores) - 10000.0)
        weights = flow.softmax(scores, dim=-1)
        values = flow.matmul(weights, v).transpose(1, 2)
        values = values.to_global(sbp=self.layout.nd(S(0), S(2)))
        return self.out(values.reshape(batch, length, width))


class MLP(nn.Module):
    """Two linear layers with a gelu in between: by columns, then by rows."""

    def __init__(self, layout, width, stage=0):
        super().__init__()
        self.up = Linear(layout, width, 4 * width, "col", stage)
        self.down = Linear(layout, 4 * width, width, "row", stage)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    """A pre-norm transformer layer on the placement of its stage."""

    def __init__(self, layout, width, heads, stage=0):
        super().__init__()
        self.layout, self.stage = layout, stage
        self.norm1, self.norm2 = LayerNorm(layout, width, stage), LayerNorm(layout, width, stage)
        self.attention = Attention(layout, width, heads, stage)
        self.mlp = MLP(layout, width, stage)

    def forward(self, x, mask):
        x = x.to_global(placement=self.layout.place(self.stage))
        mask = mask.to_global(placement=self.layout.place(self.stage))
        x = x.to_global(sbp=self.layout.nd(S(0), B), grad_sbp=x.sbp)
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Token and position embeddings, layers, and a head that shares the token embedding; returns the loss."""

    def __init__(self, layout, vocab=16, width=16, heads=4, length=8, layers=2):
        super().__init__()
        self.layout, last = layout, len(layout.places) - 1
        self.tokens = VocabEmbedding(layout, vocab, width)
        self.positions = nn.Parameter(
            flow.empty((length, width), dtype=flow.float32, placement=layout.place(0), sbp=layout.nd(B, B))
        )
        nn.init.normal_(self.positions, std=0.02)
        self.layers = nn.ModuleList([Block(layout, width, heads, layout.stage_of(i, layers)) for i in range(layers)])
        self.norm = LayerNorm(layout, width, last)
        self.head = Linear(layout, width, vocab, "col", last)

    def forward(self, ids, labels):
        length = ids.size(1)
        mask = flow.tril(
            flow.ones((length, length), dtype=flow.int32, placement=ids.placement, sbp=self.layout.nd(B, B))
        )
        x = self.tokens(ids) + self.positions[:length]
        for layer in self.layers:
            x = layer(x, mask.to(flow.bool))
        logits = self.head(self.norm(x))
        logits = logits.to_global(sbp=self.layout.nd(S(0), B))
        labels = labels.to_global(placement=logits.placement)
        return nn.functional.cross_entropy(logits.reshape(-1, logits.size(-1)), labels.reshape(-1))


def filled(model):
    """Give every parameter values that depend on its name alone."""
    for number, (_, p) in enumerate(sorted(model.named_parameters())):
        values = np.sin(np.arange(p.numel()) * (0.37 + 0.01 * number) + number).astype(np.float32) * 0.1
        new = flow.tensor(values.reshape(tuple(p.shape)) + (1.0 if "norm" in _ and "weight" in _ else 0.0))
        with flow.no_grad():
            p.copy_(new.to_global(placement=p.placement, sbp=[B] * len(p.sbp)).to_global(sbp=p.sbp))
    return model


def batch(layout, rows=8, length=8, vocab=16):
    """Return token ids and labels, rows split over the data-parallel ranks of the first stage."""
    ids = (np.arange(rows * length).reshape(rows, length) * 7 % 11 + np.arange(rows)[:, None]) % vocab
    labels = (ids * 3 + 1) % vocab
    whole = layout.nd(B, B)
    place = layout.place(0)
    made = [flow.tensor(x).to_global(placement=place, sbp=whole) for x in (ids, labels)]
    return [x.to_global(sbp=layout.nd(S(0), B)) for x in made]


class Train(nn.Graph):
    """A step of SGD with momentum."""

    def __init__(self, model, optimizer, steps=1, checkpoint=False):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        if steps > 1:
            self.config.set_gradient_accumulation_steps(steps)
        layout = model.layout
        for layer in self.model.layers:
            options = layer.to(nn.graph.GraphModule)
            options.activation_checkpointing = checkpoint
            if len(layout.places) > 1:
                options.set_stage(layer.to(nn.Module).stage, layout.place(layer.to(nn.Module).stage))

    def build(self, ids, labels):
        loss = self.model(ids, labels)
        loss.backward()
        return loss


def losses(layout, graph, count=3, **options):
    """Return the losses of some steps."""
    model = filled(GPT(layout))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ids, labels = batch(layout)
    step = Train(model, optimizer, **options) if graph else None
    found = []
    for _ in range(count):
        if step is not None:
            loss = step(ids, labels)
        else:
            loss = model(ids, labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        whole = loss.to_global(sbp=[B] * len(loss.sbp))
        found.append(float(whole.to_local().numpy().mean()))
    return found
