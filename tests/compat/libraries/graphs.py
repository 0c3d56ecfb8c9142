"""Libraries' models under `torch.compile` and in `nn.Graph`, local and over eight devices, with eager losses.

    graphs.check("bert")        # under the alias, on eight devices

The model is the library's own: `model.to_global(placement, broadcast)` is all that data parallelism takes.
"""

import importlib

MODELS = ("bert", "llama", "t5", "vit", "resnet", "convnext", "cait", "maxvit", "whisper", "diffusion")
TOLERANCE = 1e-5


def _classifier(name):
    """Return a model of images in five classes, and the side of its images."""
    sizes = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "heads": 2, "mlp_dim": 64, "depth": 2}
    if name == "resnet":
        return importlib.import_module("torchvision.models").resnet18(num_classes=5), 64
    if name == "convnext":
        return importlib.import_module("timm").create_model("convnext_atto", num_classes=5), 32
    if name == "maxvit":
        module, options = "vit_pytorch.max_vit", {"num_classes": 5, "dim": 16, "dim_head": 8, "depth": (1, 1)}
        return importlib.import_module(module).MaxViT(window_size=2, dropout=0.0, **options), 32
    if name == "cait":
        return importlib.import_module("vit_pytorch.cait").CaiT(cls_depth=1, **sizes), 32
    return importlib.import_module("vit_pytorch").ViT(**sizes), 32


def _model(name):
    """Return a model, a batch, and the function of both that gives the loss."""
    import torch
    from torch.nn import functional as F

    from tests.compat.libraries.kit import fill, integers, tensor

    if name in ("bert", "llama", "t5"):
        model = getattr(importlib.import_module("tests.compat.libraries.language"), f"_{name}")()
        tokens = integers("tokens", 90, 8, 10)
        if name == "llama":
            return model, (tokens,), lambda model, tokens: model(input_ids=tokens, labels=tokens, use_cache=False).loss
        mask = torch.ones(8, 10, dtype=torch.long)
        mask[:4, 7:] = 0
        batch = (tokens, mask, integers("labels", 3, 8) if name == "bert" else integers("answers", 90, 8, 6))
        return model, batch, lambda model, x, mask, y: model(input_ids=x, attention_mask=mask, labels=y)["loss"]
    if name == "whisper":
        from whisper.model import ModelDimensions, Whisper

        model = Whisper(ModelDimensions(8, 10, 16, 2, 2, 50, 8, 16, 2, 2))
        batch = (tensor("mel", 8, 8, 20), integers("tokens", 50, 8, 6), integers("targets", 50, 8, 6))
        return fill(model), batch, lambda model, x, tokens, y: F.cross_entropy(model(x, tokens).transpose(1, 2), y)
    if name == "diffusion":
        from diffusers import UNet2DModel

        kinds = {
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        }
        sizes = {"sample_size": 16, "block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
        model = UNet2DModel(in_channels=1, out_channels=1, attention_head_dim=8, **sizes, **kinds)
        batch = (tensor("noisy", 8, 1, 16, 16), integers("times", 50, 8), tensor("noise", 8, 1, 16, 16))
        return fill(model), batch, lambda model, x, t, y: F.mse_loss(model(x, t)["sample"], y)
    model, side = _classifier(name)
    batch = (tensor("images", 8, 3, side, side), integers("classes", 5, 8))
    return fill(model), batch, lambda model, x, y: F.cross_entropy(model(x), y)


def losses(name, how, steps=3):
    """Return the losses of some steps: ``"eager"``, ``"compile"``, ``"graph"``, or ``"parallel"`` over eight."""
    import torch

    import sbpjax as flow

    model, batch, loss_of = _model(name)
    model.train()
    if how == "parallel":
        eight = flow.placement("cpu", list(range(8)))
        model.to_global(eight, flow.sbp.broadcast)
        batch = [x.to_global(eight, flow.sbp.split(0)) for x in batch]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, *batch):
            loss = loss_of(self.model, *batch)
            loss.backward()
            return loss

    called = torch.compile(model) if how == "compile" else model

    def eager(*batch):
        loss = loss_of(called, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step = eager if how in ("eager", "compile") else Step()
    return [step(*batch).item() for _ in range(steps)]


def check(name, ways=("compile", "graph", "parallel")):
    """Raise AssertionError unless `torch.compile` and graphs give the losses of eager steps."""
    eager = losses(name, "eager")
    for how in ways:
        gap = max(abs(x - y) for x, y in zip(losses(name, how), eager, strict=True))
        print(name, how, gap)
        assert gap < TOLERANCE, f"{name} {how}: {gap}"
