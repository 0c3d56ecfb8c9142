"""Libraries' models in `nn.Graph`, local and data parallel over eight devices, with the losses of eager steps.

    graphs.check("bert")        # under the alias, on eight devices

The model is the library's own: `model.to_global(placement, broadcast)` is all that data parallelism takes.
"""

import importlib

MODELS = ("bert", "llama", "vit", "resnet")
TOLERANCE = 1e-5


def _model(name):
    """Return a model, a batch, and the function of both that gives the loss."""
    import torch
    from torch.nn import functional as F

    from tests.compat.libraries.kit import fill, integers, tensor

    if name in ("bert", "llama"):
        model = getattr(importlib.import_module("tests.compat.libraries.language"), f"_{name}")()
        tokens = integers("tokens", 90, 8, 10)
        if name == "llama":
            return model, (tokens,), lambda model, tokens: model(input_ids=tokens, labels=tokens, use_cache=False).loss
        mask = torch.ones(8, 10, dtype=torch.long)
        mask[:4, 7:] = 0
        batch = (tokens, mask, integers("labels", 3, 8))
        return model, batch, lambda model, x, mask, y: model(input_ids=x, attention_mask=mask, labels=y).loss
    if name == "vit":
        from vit_pytorch import ViT

        sizes = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "heads": 2, "mlp_dim": 64, "depth": 2}
        model, side = ViT(**sizes), 32
    else:
        from torchvision.models import resnet18

        model, side = resnet18(num_classes=5), 64
    batch = (tensor("images", 8, 3, side, side), integers("classes", 5, 8))
    return fill(model), batch, lambda model, x, y: F.cross_entropy(model(x), y)


def losses(name, how, steps=3):
    """Return the losses of some steps: ``"eager"``, ``"graph"`` on one device, or ``"parallel"`` over eight."""
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

    def eager(*batch):
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step = eager if how == "eager" else Step()
    return [step(*batch).item() for _ in range(steps)]


def check(name):
    """Raise AssertionError unless graphs give the losses of eager steps."""
    eager = losses(name, "eager")
    for how in ("graph", "parallel"):
        gap = max(abs(x - y) for x, y in zip(losses(name, how), eager, strict=True))
        print(name, how, gap)
        assert gap < TOLERANCE, f"{name} {how}: {gap}"
