"""Write torchvision's logits, losses and gradients: ``python -m tests.vision.models.segmentation.record``.

Weights are drawn by name and shape, so that no file of them is needed. Needs torchvision (0.28.0 was used), of which
these models need no compiled operator: so where it cannot be loaded beside PyTorch for CPU, the declarations of its
operators are left out.
"""

from __future__ import annotations

import pathlib

import numpy as np

from tests.vision.models.detection.record import weights

DATA = pathlib.Path(__file__).parent / "data"
CLASSES = 5
SIZE = (48, 64)
KINDS = ("fcn_small", "deeplabv3_small", "fcn_resnet50", "deeplabv3_resnet50")
KEPT = 0.3  # of the last norm of a block, so that answers do not grow with the depth


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return values for names and shapes, the same wherever they are drawn."""
    found = weights(shapes)
    return {name: value * KEPT if name.endswith("bn3.weight") else value for name, value in found.items()}


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return two images, and masks with pixels that do not count."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    waves = np.stack([np.sin(y / (5 + i) + i) * np.cos(x / (4 + i)) for i in range(6)]).reshape(2, 3, *SIZE)
    masks = ((y // 12 + x // 16) % CLASSES)[None] + np.zeros((2, 1, 1), np.int64)
    masks[:, 20:23] = 255
    return (waves + 0.3 * rng.standard_normal((2, 3, *SIZE))).astype(np.float32), masks


def model(kind: str):
    """Return torchvision's model."""
    from torchvision.models import resnet, segmentation
    from torchvision.models.segmentation import deeplabv3, fcn

    family, _, size = kind.partition("_")
    if size == "resnet50":
        make = getattr(segmentation, kind)
        return make(weights=None, weights_backbone=None, num_classes=CLASSES, aux_loss=True)
    dilated = [False, True, True]
    body = resnet.ResNet(resnet.Bottleneck, [1, 1, 2, 2], replace_stride_with_dilation=dilated)
    return (deeplabv3._deeplabv3_resnet if family == "deeplabv3" else fcn._fcn_resnet)(body, CLASSES, True)


def main() -> None:
    """Write the files."""
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        torch.library.register_fake = lambda name, *arguments, **options: lambda function: function
    for kind in KINDS:
        found = model(kind)
        state = {name: tuple(value.shape) for name, value in found.state_dict().items()}
        found.load_state_dict({name: torch.tensor(value) for name, value in drawn(state).items()})
        images, masks = (torch.tensor(x) for x in batch())
        images.requires_grad_()
        answers = found.eval()(images)
        losses = [torch.nn.functional.cross_entropy(answers[n], masks, ignore_index=255) for n in ("out", "aux")]
        loss = losses[0] + 0.5 * losses[1]
        loss.backward()
        facts = {"out": answers["out"][:, :, ::4, ::4], "aux": answers["aux"][:, :, ::4, ::4], "loss": loss}
        facts = {name: value.detach().numpy() for name, value in facts.items()}
        facts["gradient"] = images.grad.numpy()[:, :, ::2, ::2]
        for name in ("backbone.conv1.weight", "backbone.layer4.1.conv2.weight", "classifier.4.weight"):
            facts[f"norm/{name}"] = found.get_parameter(name).grad.norm().numpy()
        DATA.mkdir(exist_ok=True)
        np.savez_compressed(DATA / f"{kind}.npz", **facts)
        print(kind, loss.item(), np.abs(facts["out"]).max(), np.abs(facts["gradient"]).max())


if __name__ == "__main__":
    main()
