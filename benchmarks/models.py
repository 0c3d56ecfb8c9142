"""The models of the graph benchmarks, in words that sbpjax and OneFlow share.

Every function takes the library, so that one text is measured under both; this file imports neither. What a library
lacks is written out: OneFlow 0.9 has no ``scaled_dot_product_attention``. `benchmarks/twins.py` has the same models as
one writes them by hand in JAX, on parameters of the same names.

    model, optimizer, graph = train_graph(flow, "gpt2")
    x, y = data("gpt2", batch)                             # NumPy arrays
    loss = graph(flow.tensor(x), flow.tensor(y))

Shapes at the line ends: B batch, T context, D width, H heads, V vocabulary.
"""

from __future__ import annotations

import math

import numpy as np

MLP = {"inputs": 784, "width": 512, "classes": 10}
RESNET = {"classes": 100, "pixels": 128}
SMALL = {"classes": 100, "pixels": 64}  # its last stage has 2 x 2 pixels, fewer than a kernel
GPT2 = {"layers": 2, "width": 256, "heads": 8, "context": 128, "vocab": 512}
SWIN = {"classes": 100, "pixels": 224}
GPT12 = {"layers": 12, "width": 128, "heads": 4, "context": 128, "vocab": 512}


def mlp(lib, *, inputs: int, width: int, classes: int):
    """Return three linear layers with ReLU between them."""
    nn = lib.nn
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
    )


def resnet18(lib, *, classes: int, pixels: int):
    """Return the ResNet with 18 layers of He et al. (2015), table 1, for images of any size."""
    nn = lib.nn

    class Basic(nn.Module):
        def __init__(self, inside: int, outside: int, stride: int):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU()
            self.shortcut = None
            if stride != 1 or inside != outside:
                conv = nn.Conv2d(inside, outside, 1, stride, bias=False)
                self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outside))

        def forward(self, x):
            y = self.relu(self.norm1(self.conv1(x)))
            y = self.norm2(self.conv2(y))
            return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.norm = nn.BatchNorm2d(64)
            self.relu = nn.ReLU()
            self.pool = nn.MaxPool2d(3, 2, 1)
            blocks, inside = [], 64
            for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
                blocks += [Basic(inside, outside, stride), Basic(outside, outside, 1)]
                inside = outside
            self.blocks = nn.Sequential(*blocks)
            self.head = nn.Linear(512, classes)

        def forward(self, x):
            x = self.pool(self.relu(self.norm(self.stem(x))))  # (B, 64, 32, 32) of 128 pixels
            x = self.blocks(x)  # (B, 512, 4, 4)
            return self.head(x.mean(dim=(2, 3)))

    return ResNet()


def swin_t(lib, *, classes: int, pixels: int):
    """Return the smallest Swin Transformer of Liu et al. (2021), table 7: 7 × 7 windows, every other block shifted."""
    nn, functional = lib.nn, lib.nn.functional
    window, depths = 7, (2, 2, 6, 2)

    def cut(x, side: int):
        """(B, S, S, C) → (B windows, 49, C)."""
        count, channels = side // window, x.shape[-1]
        x = x.reshape(-1, count, window, count, window, channels).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, window * window, channels)

    def joined(x, side: int):
        """(B windows, 49, C) → (B, S, S, C)."""
        count, channels = side // window, x.shape[-1]
        x = x.reshape(-1, count, count, window, window, channels).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, side, side, channels)

    places = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
    apart = places[:, :, None] - places[:, None, :] + window - 1
    pairs = (apart[0] * (2 * window - 1) + apart[1]).reshape(-1)  # (49 · 49,): which bias a pair of pixels has

    def regions(side: int):
        """Return -100 between pixels of a shifted window that are no neighbours in the image: (windows, 1, 49, 49)."""
        cuts = [slice(0, -window), slice(-window, -(window // 2)), slice(-(window // 2), None)]
        numbers = np.zeros((side, side), np.int64)
        for i, rows in enumerate(cuts):
            for j, columns in enumerate(cuts):
                numbers[rows, columns] = 3 * i + j
        numbers = numbers.reshape(side // window, window, side // window, window).transpose(0, 2, 1, 3)
        numbers = numbers.reshape(-1, window * window)
        apart = numbers[:, None, :] != numbers[:, :, None]
        return np.where(apart, np.float32(-100), np.float32(0))[:, None]

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, side: int, shift: int):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down, self.gelu = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()
            self.bias = nn.Parameter(lib.zeros((2 * window - 1) ** 2, heads))
            self.heads, self.side, self.shift = heads, side, shift
            self.register_buffer("pairs", lib.tensor(pairs))
            self.register_buffer("mask", lib.tensor(regions(side)) if shift else None)

        def attention(self, x):
            batch, length, width = x.shape  # (B windows, 49, C)
            qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            bias = self.bias[self.pairs].reshape(length, length, self.heads).permute(2, 0, 1)[None]
            if self.mask is not None:
                bias = (bias + self.mask)[None].expand(batch // self.mask.shape[0], -1, -1, -1, -1)
                bias = bias.reshape(batch, self.heads, length, length)
            y = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attn_mask=bias)
            return self.out(y.permute(0, 2, 1, 3).reshape(batch, length, width))

        def forward(self, x):
            y = self.norm1(x)
            if self.shift:
                y = lib.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
            y = joined(self.attention(cut(y, self.side)), self.side)
            if self.shift:
                y = lib.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
            x = x + y
            return x + self.down(self.gelu(self.up(self.norm2(x))))

    class Merge(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.norm, self.less = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

        def forward(self, x):
            x = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
            return self.less(self.norm(lib.cat(x, dim=-1)))

    class Swin(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.norm0 = nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)
            blocks, width, heads, side = [], 96, 3, pixels // 4
            for stage, depth in enumerate(depths):
                if stage:
                    blocks.append(Merge(width))
                    width, heads, side = 2 * width, 2 * heads, side // 2
                for i in range(depth):
                    blocks.append(Block(width, heads, side, window // 2 if i % 2 and side > window else 0))
            self.blocks = nn.Sequential(*blocks)
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, x):
            x = self.norm0(self.patches(x).permute(0, 2, 3, 1))  # (B, 56, 56, 96) of 224 pixels
            return self.head(self.norm(self.blocks(x)).mean(dim=(1, 2)))

    return Swin()


def gpt(lib, *, layers: int, width: int, heads: int, context: int, vocab: int):
    """Return a GPT whose output matrix is its embedding table."""
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gelu = nn.GELU()

        def forward(self, x, above):
            batch, length, _ = x.shape  # (B, T, D)
            y = self.qkv(self.norm1(x)).reshape(batch, length, heads, 3 * width // heads).permute(0, 2, 1, 3)
            q, k, v = y.chunk(3, dim=-1)  # each (B, H, T, D/H)
            if hasattr(functional, "scaled_dot_product_attention"):
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = lib.matmul(q, k.transpose(2, 3)) * (heads / width) ** 0.5
                y = lib.matmul(lib.softmax(scores.masked_fill(above, -1e30), dim=-1), v)
            x = x + self.out(y.permute(0, 2, 1, 3).reshape(batch, length, width))
            return x + self.down(self.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            for name, parameter in self.named_parameters():
                if name.endswith(("out.weight", "down.weight")):
                    nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(2 * layers))
                elif parameter.ndim == 2:
                    nn.init.normal_(parameter, mean=0.0, std=0.02)
            above = np.triu(np.ones((context, context), np.bool_), 1)
            self.above = None if hasattr(functional, "scaled_dot_product_attention") else lib.tensor(above)

        def forward(self, tokens):
            x = self.token(tokens) + self.position.weight  # (B, T, D)
            for block in self.blocks:
                x = block(x, self.above)
            x = lib.matmul(self.norm(x), self.token.weight.transpose(0, 1))
            return x.reshape(-1, vocab)  # (B T, V)

    return GPT()


def sgd(lib, model):
    return lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def adam(lib, model):
    return lib.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)


# Name → (model, its sizes, its optimizer).
MODELS = {
    "mlp": (mlp, MLP, adam),
    "resnet18": (resnet18, RESNET, sgd),
    "resnet18-64": (resnet18, SMALL, sgd),
    "swin_t": (swin_t, SWIN, adam),
    "gpt2": (gpt, GPT2, adam),
    "gpt12": (gpt, GPT12, adam),
}


def train_graph(lib, name: str, sizes: dict | None = None):
    """Return the model of a name, its optimizer and its graph; the graph returns the loss.

    Args:
        lib: the library, `sbpjax` or `oneflow`.
        name: one of `MODELS`.
        sizes: instead of the sizes there.
    """
    make, usual, optimize = MODELS[name]
    model = make(lib, **(sizes or usual))
    optimizer = optimize(lib, model)
    criterion = lib.nn.CrossEntropyLoss()

    class TrainGraph(lib.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.criterion = model, criterion
            self.add_optimizer(optimizer)

        def build(self, x, y):
            loss = self.criterion(self.model(x), y)
            loss.backward()
            return loss

    return model, optimizer, TrainGraph()


def data(name: str, batch: int, sizes: dict | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch of inputs and targets."""
    rng = np.random.default_rng(0)
    sizes = sizes or MODELS[name][1]
    if name == "mlp":
        return rng.normal(size=(batch, sizes["inputs"])).astype(np.float32), rng.integers(0, sizes["classes"], batch)
    if "pixels" in sizes:
        images = rng.normal(size=(batch, 3, sizes["pixels"], sizes["pixels"])).astype(np.float32)
        return images, rng.integers(0, sizes["classes"], batch)
    tokens = rng.integers(0, sizes["vocab"], (batch, sizes["context"] + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1).copy()
