"""A vision transformer: patches by a strided convolution, a class token, pre-norm blocks, stochastic depth off."""

import math
from collections import OrderedDict
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class PatchEmbed(nn.Module):
    def __init__(self, img_size=32, patch_size=8, in_chans=3, embed_dim=32):
        super().__init__()
        self.grid = (img_size // patch_size, img_size // patch_size)
        self.num_patches = self.grid[0] * self.grid[1]
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        B, C, H, W = x.shape
        assert H % self.grid[0] == 0 and W % self.grid[1] == 0
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, num_heads=4, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(0.0)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj_drop(self.proj(x))


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1 - self.p)
        return x * keep.div_(1 - self.p)

    def extra_repr(self):
        return f"p={self.p:.3f}"


class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio=2.0, drop_path=0.0, norm_layer=nn.LayerNorm, init_values=0.1):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = Attention(dim, num_heads)
        self.norm2 = norm_layer(dim)
        hidden = int(dim * mlp_ratio)
        self.mlp = nn.Sequential(
            OrderedDict(fc1=nn.Linear(dim, hidden), act=nn.GELU(), fc2=nn.Linear(hidden, dim), drop=nn.Dropout(0.0))
        )
        self.gamma = nn.ParameterDict({k: nn.Parameter(init_values * torch.ones(dim)) for k in ("attn", "mlp")})
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path(self.gamma["attn"] * self.attn(self.norm1(x)))
        x = x + self.drop_path(self.gamma["mlp"] * self.mlp(self.norm2(x)))
        return x


class VisionTransformer(nn.Module):
    def __init__(self, img_size=32, patch_size=8, dim=32, depth=2, num_heads=4, num_classes=10):
        super().__init__()
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        self.patch_embed = PatchEmbed(img_size, patch_size, 3, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, dim))
        self.blocks = nn.ModuleList([Block(dim, num_heads, norm_layer=norm_layer) for _ in range(depth)])
        self.norm = norm_layer(dim)
        self.head = nn.Linear(dim, num_classes) if num_classes > 0 else nn.Identity()
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.normal_(self.cls_token, std=1e-2)
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.LayerNorm):
            nn.init.ones_(m.weight)

    def interpolated(self, h, w):
        """Position embedding resized to another grid of patches, as for images of another size."""
        cls, grid = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        side = int(math.sqrt(grid.shape[1]))
        grid = grid.reshape(1, side, side, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(h, w), mode="bilinear", align_corners=False)
        return torch.cat((cls, grid.permute(0, 2, 3, 1).flatten(1, 2)), dim=1)

    def forward(self, x):
        h, w = (s // p for s, p in zip(x.shape[-2:], self.patch_embed.proj.stride))
        pos = self.pos_embed if (h, w) == self.patch_embed.grid else self.interpolated(h, w)
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + pos
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0]), x[:, 1:].mean(dim=1)


def build():
    return VisionTransformer()


def example(rng):
    return {"images": rng.standard_normal((4, 3, 32, 48), dtype=np.float32), "labels": rng.integers(0, 10, (4,))}


def loss(model, batch):
    logits, pooled = model(batch["images"])
    value = F.cross_entropy(logits, batch["labels"]) + 0.1 * pooled.pow(2).mean()
    return value, {"logits": logits, "pooled": pooled}
