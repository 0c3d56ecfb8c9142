"""Write torchvision's losses and detections: ``python -m tests.vision.models.detection.record [model ...]``.

Weights are drawn by name and shape, so that no file of them is needed. Needs torchvision (0.28.0 was used) with its
compiled operators.
"""

from __future__ import annotations

import pathlib
import sys
import zlib

import numpy as np

DATA = pathlib.Path(__file__).parent / "data"
CLASSES = 7
SIZES = {"ssd": (300, 300), "retinanet": (128, 160), "faster_rcnn": (128, 160)}
BOXES = [[[20, 30, 90, 100], [60, 10, 150, 70], [5, 80, 40, 120]], [[30, 20, 120, 110]]]
LABELS = [[1, 3, 6], [2]]


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return values for names and shapes, the same wherever they are drawn."""
    found = {}
    for name, shape in shapes.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        last = name.rpartition(".")[2]
        if last == "running_var" or (last == "weight" and len(shape) == 1):
            values = rng.uniform(0.7, 1.3, shape)
        elif last == "scale_weight":
            values = rng.uniform(15, 25, shape)
        elif len(shape) > 1:
            values = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:])) * _spread(name)
        else:
            values = rng.standard_normal(shape) * 0.02 - (3 if "cls_logits" in name else 0)
        found[name] = values.astype(np.float32)
    return found


def _spread(name: str) -> float:
    """Return how large weights are, beside what keeps answers as large as what comes in."""
    if name == "backbone.features.0.weight":
        return 0.02  # of pixels up to 128
    if "fpn.inner_blocks" in name:
        return 0.03  # a ResNet's answers grow with its depth
    if "box_head" in name or "rpn.head" in name:
        return 0.5
    if "bbox_pred" in name or "bbox_reg" in name or "regression_head.module_list" in name:
        return 0.1  # boxes near their anchors
    return 1.0


def images(kind: str) -> np.ndarray:
    """Return two images with values from 0 to 1."""
    height, width = SIZES[kind]
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(y / (9 + i) + i) * np.cos(x / (7 + i)) for i in range(6)]
    noise = np.random.default_rng(1).random((2, 3, height, width))
    return (0.35 + 0.3 * np.stack(waves).reshape(2, 3, height, width) + 0.3 * noise).astype(np.float32)


def model(kind: str):
    """Return torchvision's model."""
    from torchvision.models import detection, resnet18
    from torchvision.models.detection import backbone_utils
    from torchvision.ops import FrozenBatchNorm2d
    from torchvision.ops.feature_pyramid_network import LastLevelP6P7

    if kind == "ssd":
        return detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=CLASSES)
    body = resnet18(norm_layer=FrozenBatchNorm2d)
    if kind == "faster_rcnn":  # all anchors and proposals are trained, so that nothing is drawn
        backbone = backbone_utils._resnet_fpn_extractor(body, 5)
        return detection.FasterRCNN(
            backbone, CLASSES, min_size=128, max_size=160,
            rpn_batch_size_per_image=10**5, box_batch_size_per_image=4000,
            rpn_pre_nms_top_n_train=1000, rpn_post_nms_top_n_train=300, rpn_post_nms_top_n_test=300,
        )  # fmt: skip
    levels = LastLevelP6P7(256, 256)
    backbone = backbone_utils._resnet_fpn_extractor(body, 5, returned_layers=[2, 3, 4], extra_blocks=levels)
    anchors = detection.retinanet._default_anchorgen()
    return detection.RetinaNet(backbone, CLASSES, anchor_generator=anchors, min_size=128, max_size=160)


def main() -> None:
    """Write the files."""
    import torch

    for kind in sys.argv[1:] or SIZES:
        found = model(kind)
        state = found.state_dict()
        drawn = weights({name: tuple(value.shape) for name, value in state.items()})
        found.load_state_dict({name: torch.tensor(value) for name, value in drawn.items()})
        given = list(torch.tensor(images(kind)))
        truth = [
            {"boxes": torch.tensor(boxes, dtype=torch.float32), "labels": torch.tensor(labels)}
            for boxes, labels in zip(BOXES, LABELS, strict=True)
        ]
        losses = found.train()(given, truth)
        sum(losses.values()).backward()
        facts = {f"loss/{name}": value.item() for name, value in losses.items()}
        for name, parameter in found.named_parameters():
            if parameter.grad is not None:
                facts[f"norm/{name}"] = parameter.grad.norm().item()
        with torch.no_grad():
            for i, one in enumerate(found.eval()(given)):
                facts |= {f"{i}/{name}": value.numpy() for name, value in one.items()}
        DATA.mkdir(exist_ok=True)
        np.savez_compressed(DATA / f"{kind}.npz", **facts)
        print(kind, {name: value.item() for name, value in losses.items()}, [len(facts[f"{i}/boxes"]) for i in (0, 1)])
        print(facts["0/scores"][:5], facts["0/labels"][:5], facts["0/scores"][-3:])


if __name__ == "__main__":
    main()
