"""Programs of models that research repositories publish through pip: Whisper, NaViT, diffusion, fairscale."""

import os

import torch
from torch import nn
from torch.nn import functional as F

from tests.compat.libraries.kit import digest, fill, integers, tensor, train


def whisper_model():
    """A small Whisper: three steps, and tokens decoded one by one through its cache."""
    from whisper.model import ModelDimensions, Whisper

    model = fill(Whisper(ModelDimensions(8, 10, 16, 2, 2, 50, 8, 16, 2, 2)))
    mel, tokens, targets = tensor("mel", 2, 8, 20), integers("tokens", 50, 2, 6), integers("targets", 50, 2, 6)
    losses = train(model, lambda i: F.cross_entropy(model(mel, tokens).transpose(1, 2), targets), lr=1e-3)
    with torch.no_grad():
        audio = model.eval().embed_audio(mel)
        cache, hooks = model.install_kv_cache_hooks()
        steps = [model.decoder(tokens[:, i : i + 1], audio, kv_cache=cache) for i in range(6)]
        for hook in hooks:
            hook.remove()
    return [*losses, *digest(torch.cat(steps, 1)), *digest(model.logits(tokens, audio))]


def navit_model():
    """NaViT of vit-pytorch: images of different sizes packed into sequences."""
    from vit_pytorch.na_vit import NaViT

    model = fill(NaViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64, dim_head=16))
    images = [[tensor("a", 3, 16, 32), tensor("b", 3, 32, 8)], [tensor("c", 3, 8, 8), tensor("d", 3, 24, 16)]]
    y = integers("y", 5, 4)
    return train(model, lambda i: F.cross_entropy(model(images), y))


def denoising_diffusion():
    """The UNet of denoising-diffusion-pytorch on given noise, and predictions of the clean images."""
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    unet = fill(Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8))
    diffusion = GaussianDiffusion(unet, image_size=16, timesteps=20, objective="pred_v")
    x, noise, steps = tensor("x", 2, 3, 16, 16), tensor("noise", 2, 3, 16, 16), integers("steps", 20, 2)
    losses = train(unet, lambda i: diffusion.p_losses(x, steps, noise=noise), lr=1e-3)
    with torch.no_grad():
        found = diffusion.model_predictions(noise, steps, clip_x_start=True)
    return [*losses, *digest(found.pred_noise), *digest(found.pred_x_start)]


def fairscale_layers():
    """The parallel layers of fairscale, of which the first Llama is made, in a group of one process."""
    from fairscale.nn.model_parallel import initialize
    from fairscale.nn.model_parallel.layers import ColumnParallelLinear, ParallelEmbedding, RowParallelLinear

    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            options = {"bias": False, "init_method": lambda x: x}
            self.embed = ParallelEmbedding(50, 16, init_method=lambda x: x)
            self.w1 = ColumnParallelLinear(16, 32, gather_output=False, **options)
            self.w3 = ColumnParallelLinear(16, 32, gather_output=False, **options)
            self.w2 = RowParallelLinear(32, 16, input_is_parallel=True, **options)
            self.output = ColumnParallelLinear(16, 50, **options)

        def forward(self, tokens):
            x = self.embed(tokens)
            return self.output(x + self.w2(F.silu(self.w1(x)) * self.w3(x)))

    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555", "RANK": "0", "WORLD_SIZE": "1"}.items():
        os.environ.setdefault(name, value)
    torch.distributed.init_process_group("gloo")
    initialize.initialize_model_parallel(1)
    model, tokens = fill(Gated()), integers("tokens", 50, 2, 8)
    losses = train(model, lambda i: F.cross_entropy(model(tokens).transpose(1, 2), tokens.roll(-1, 1)))
    initialize.destroy_model_parallel()
    torch.distributed.destroy_process_group()
    return losses
