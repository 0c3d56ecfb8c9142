"""Our models of segmentation with recorded weights, and the comparison with what torchvision gave."""

import numpy as np

import sbpjax as flow
from sbpjax.vision.models.segmentation import FCN, DeepLabV3
from tests.vision.models.segmentation.record import CLASSES, DATA, batch, drawn

LOGITS, GRADIENTS = 1e-4, 1e-3  # of the largest element


def model(kind):
    family, _, size = kind.partition("_")
    body = size
    if size == "small":
        body = flow.vision.create_model("resnet50", depths=(1, 1, 2, 2), output_stride=8)
    found = {"fcn": FCN, "deeplabv3": DeepLabV3}[family](CLASSES, body)
    values = drawn({name: tuple(value.shape) for name, value in found.state_dict().items()})
    found.load_state_dict({name: flow.tensor(value) for name, value in values.items()})
    return found.eval()


def agrees_with_torchvision(kind):
    """Compare logits of both heads, the loss, and gradients by the images and by weights of all depths."""
    with np.load(DATA / f"{kind}.npz") as file:
        facts = dict(file)
    made = model(kind)
    watched = {name[5:]: made.get_parameter(name[5:]) for name in facts if name.startswith("norm/")}

    @flow.compile
    def step(images, masks):
        first, second = made.both(images)
        loss = made.loss(images, masks)
        gradient, *others = flow.autograd.grad(loss, [images, *watched.values()])
        return first, second, loss, gradient, [other.norm() for other in others]

    images, masks = batch()
    first, second, loss, gradient, norms = step(flow.tensor(images, requires_grad=True), flow.tensor(masks))
    close(first[:, :, ::4, ::4], facts["out"], LOGITS)
    close(second[:, :, ::4, ::4], facts["aux"], LOGITS)
    close(loss, facts["loss"], LOGITS)
    close(gradient[:, :, ::2, ::2], facts["gradient"], GRADIENTS)
    for name, norm in zip(watched, norms, strict=True):
        close(norm, facts[f"norm/{name}"], GRADIENTS)


def close(ours, theirs, tolerance):
    """Assert that no element differs by more than a part of the largest."""
    assert np.abs(ours.detach().numpy() - theirs).max() <= tolerance * np.abs(theirs).max()
