"""Write what torchvision computes of boxes, regions and losses, for `test_boxes.py` and the files beside it.

python -m tests.vision.ops.record

Needs torchvision (0.28.0 was used) with its compiled operators.
"""

from __future__ import annotations

import pathlib

import numpy as np

DATA = pathlib.Path(__file__).parent / "data" / "facts.npz"
PAIRS = ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou")
ROWS = ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss")
THRESHOLDS = (0.1, 0.5, 0.8)
REGIONS = [(scale, ratio, aligned) for scale in (1.0, 0.5) for ratio in (-1, 2) for aligned in (False, True)]


def random_boxes(rng: np.random.Generator, n: int, size: float) -> np.ndarray:
    """Return ``(n, 4)`` boxes with sides above 0."""
    low = rng.uniform(0, size, (n, 2))
    return np.concatenate([low, low + rng.uniform(0.1, size / 2, (n, 2))], 1).astype(np.float32)


def inputs() -> dict[str, np.ndarray]:
    """Return the inputs, the same at every call."""
    rng = np.random.default_rng(0)
    made = {"one": random_boxes(rng, 9, 20), "two": random_boxes(rng, 7, 20), "many": random_boxes(rng, 120, 30)}
    made |= {"scores": rng.random(120).astype(np.float32), "classes": rng.integers(0, 4, 120)}
    rois = np.concatenate([rng.integers(0, 2, (6, 1)), random_boxes(rng, 6, 18)], 1).astype(np.float32)
    rois[4, 1:] = -5, -5, 60, 60  # larger than the image
    rois[5, 1:] = 100, 100, 120, 120  # outside of it
    made |= {"rois": rois, "image": rng.standard_normal((2, 2, 10, 12)).astype(np.float32)}
    made |= {"logits": rng.standard_normal((5, 6)).astype(np.float32)}
    return made | {"truth": (rng.random((5, 6)) > 0.5).astype(np.float32)}


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Return the weights of the sum whose gradient is compared."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def main() -> None:
    """Write the file."""
    import torch
    from torchvision import ops

    given = {name: torch.tensor(value) for name, value in inputs().items()}
    facts = {}

    def keep(name: str, of, *names: str) -> None:
        leaves = [given[one].clone().requires_grad_() for one in names]
        out = of(*leaves)
        (out * torch.tensor(weights(tuple(out.shape)))).sum().backward()
        facts[name] = out.detach().numpy()
        facts.update({f"{name}/{one}": leaf.grad.numpy() for one, leaf in zip(names, leaves, strict=True)})

    for name in PAIRS:
        keep(name, getattr(ops, name), "one", "two")
    for name in ROWS:
        keep(name, lambda one, two, name=name: getattr(ops, name)(one[:7], two), "one", "two")
    keep("focal", lambda x: ops.sigmoid_focal_loss(x, given["truth"]), "logits")
    for threshold in THRESHOLDS:
        facts[f"nms/{threshold}"] = ops.nms(given["many"], given["scores"], threshold).numpy()
        by_class = ops.batched_nms(given["many"], given["scores"], given["classes"], threshold)
        facts[f"batched_nms/{threshold}"] = by_class.numpy()
    for scale in (1.0, 0.5):
        keep(f"roi_pool/{scale}", lambda x, scale=scale: ops.roi_pool(x, given["rois"], (3, 4), scale), "image")
    for scale, ratio, aligned in REGIONS:
        options = (given["rois"], (3, 4), scale, ratio, aligned)
        keep(f"roi_align/{scale}/{ratio}/{aligned}", lambda x, o=options: ops.roi_align(x, *o), "image")
    DATA.parent.mkdir(exist_ok=True)
    np.savez_compressed(DATA, **facts)


if __name__ == "__main__":
    main()
