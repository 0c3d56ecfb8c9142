"""A U-Net with attention, as diffusion models have it: time embedding, group norm, skips, up- and downsampling."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half)
    freqs = freqs.to(device=timesteps.device)
    args = timesteps[:, None].float() * freqs[None]
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding


def zero_module(module):
    for p in module.parameters():
        p.detach().mul_(0.1)
    return module


class ResBlock(nn.Module):
    def __init__(self, channels, emb_channels, out_channels=None, up=False, down=False):
        super().__init__()
        out_channels = out_channels or channels
        self.in_layers = nn.Sequential(
            nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1)
        )
        self.resample = nn.Identity()
        if up:
            self.resample = nn.Upsample(scale_factor=2, mode="nearest")
        elif down:
            self.resample = nn.AvgPool2d(2)
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, 2 * out_channels))
        self.out_norm = nn.GroupNorm(4, out_channels)
        self.out_rest = nn.Sequential(
            nn.SiLU(), nn.Dropout(p=0.0), zero_module(nn.Conv2d(out_channels, out_channels, 3, padding=1))
        )
        self.skip = nn.Identity() if out_channels == channels else nn.Conv2d(channels, out_channels, 1)

    def forward(self, x, emb):
        h = self.resample(self.in_layers[1](self.in_layers[0](x)))
        h = self.in_layers[-1](h)
        scale, shift = torch.chunk(self.emb_layers(emb)[..., None, None], 2, dim=1)
        h = self.out_norm(h) * (1 + scale) + shift
        return self.skip(self.resample(x)) + self.out_rest(h)


class AttentionBlock(nn.Module):
    def __init__(self, channels, num_heads=2):
        super().__init__()
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, channels * 3, 1)
        self.proj_out = zero_module(nn.Conv1d(channels, channels, 1))

    def forward(self, x):
        b, c, *spatial = x.shape
        x = x.reshape(b, c, -1)
        qkv = self.qkv(self.norm(x))
        length = qkv.shape[-1]
        q, k, v = qkv.reshape(b * self.num_heads, -1, length).chunk(3, dim=1)
        scale = 1 / math.sqrt(math.sqrt(c // self.num_heads))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        h = torch.einsum("bts,bcs->bct", weight, v).reshape(b, -1, length)
        return (x + self.proj_out(h)).reshape(b, c, *spatial)


class UNet(nn.Module):
    def __init__(self, in_channels=3, width=8, emb=32, num_classes=5):
        super().__init__()
        self.width = width
        self.time_embed = nn.Sequential(nn.Linear(width, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label_emb = nn.Embedding(num_classes, emb)
        self.input = nn.Conv2d(in_channels, width, 3, padding=1)
        self.downs = nn.ModuleList(
            [
                nn.ModuleList([ResBlock(width, emb), nn.Identity()]),
                nn.ModuleList([ResBlock(width, emb, 2 * width, down=True), AttentionBlock(2 * width)]),
            ]
        )
        self.middle = nn.ModuleList([ResBlock(2 * width, emb), AttentionBlock(2 * width)])
        self.ups = nn.ModuleList(
            [
                nn.ModuleList([ResBlock(4 * width, emb, width, up=True), nn.Identity()]),
                nn.ModuleList([ResBlock(2 * width, emb, width), nn.Identity()]),
            ]
        )
        self.up = nn.ConvTranspose2d(width, width, 2, stride=2)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.out = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, in_channels, 3, padding=1))

    def forward(self, x, timesteps, y=None):
        emb = self.time_embed(timestep_embedding(timesteps, self.width))
        if y is not None:
            assert y.shape == (x.shape[0],)
            emb = emb + self.label_emb(y)
        h = self.down(self.input(F.pad(x, (1, 1, 1, 1), mode="reflect")[:, :, 1:-1, 1:-1]))
        skips = []
        for block, attention in self.downs:
            h = attention(block(h, emb))
            skips.append(h)
        h = self.middle[1](self.middle[0](h, emb))
        for block, attention in self.ups:
            h = attention(block(torch.cat([h, skips.pop()], dim=1), emb))
        return self.out(self.up(h))


def build():
    return UNet()


def example(rng):
    return {
        "x": rng.standard_normal((4, 3, 16, 16), dtype=np.float32),
        "timesteps": rng.integers(0, 1000, (4,)),
        "y": rng.integers(0, 5, (4,)),
        "noise": rng.standard_normal((4, 3, 16, 16), dtype=np.float32),
    }


def loss(model, batch):
    predicted = model(batch["x"], batch["timesteps"], batch["y"])
    return F.mse_loss(predicted, batch["noise"]) + 0.1 * F.smooth_l1_loss(predicted, batch["x"]), {"noise": predicted}
