"""IResNet: the vectors and gradients of the same network written for PyTorch, by InsightFace's names."""

import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError, OpValueError
from sbpjax.vision.models.iresnet import IResNet, IResNetConfig
from tests.vision.models.both import GRADIENTS, LOGITS, close, random_state

CASES = [(1, 1, 1, 1), pytest.param((3, 4, 14, 3), marks=pytest.mark.exhaustive)]


def of_torch(depths, width, size, length):
    """Return the network as PyTorch's modules, and a function that runs it."""
    from torch import nn

    def block(inputs, outputs):
        parts = {
            "bn1": nn.BatchNorm2d(inputs),
            "conv1": nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            "bn2": nn.BatchNorm2d(outputs),
            "prelu": nn.PReLU(outputs),
        }
        return nn.ModuleDict(parts), outputs

    def stage(inputs, outputs, depth):
        made = nn.ModuleList()
        for i in range(depth):
            one, _ = block(inputs if i == 0 else outputs, outputs)
            one["conv2"] = nn.Conv2d(outputs, outputs, 3, 2 if i == 0 else 1, padding=1, bias=False)
            one["bn3"] = nn.BatchNorm2d(outputs)
            if i == 0:
                one["downsample"] = nn.Sequential(nn.Conv2d(inputs, outputs, 1, 2, bias=False), nn.BatchNorm2d(outputs))
            made.append(one)
        return made

    net, inputs = nn.ModuleDict(), width
    net["conv1"] = nn.Conv2d(3, width, 3, padding=1, bias=False)
    net["bn1"], net["prelu"] = nn.BatchNorm2d(width), nn.PReLU(width)
    for number, depth in enumerate(depths):
        net[f"layer{number + 1}"] = stage(inputs, width * 2**number, depth)
        inputs = width * 2**number
    net["bn2"] = nn.BatchNorm2d(inputs)
    net["fc"] = nn.Linear(inputs * (size // 16) ** 2, length)
    net["features"] = nn.BatchNorm1d(length)

    def run(x):
        x = net["prelu"](net["bn1"](net["conv1"](x)))
        for number, _ in enumerate(depths):
            for one in net[f"layer{number + 1}"]:
                y = one["prelu"](one["bn2"](one["conv1"](one["bn1"](x))))
                y = one["bn3"](one["conv2"](y))
                x = y + (one["downsample"](x) if "downsample" in one else x)
        return net["features"](net["fc"](net["bn2"](x).flatten(1)))

    return net, run


@pytest.mark.parametrize("depths", CASES)
def test_vectors_and_gradients_of_torch(depths, tmp_path):
    import torch

    net, run = of_torch(depths, 8, 32, 5)
    random_state(net)
    torch.save(net.state_dict(), tmp_path / "faces.pth")
    model = IResNet(IResNetConfig(depths=depths, width=8, image_size=32, num_classes=5))
    flow.vision.models.load_checkpoint(model, tmp_path / "faces.pth").eval()
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    wanted = run(x)
    (wanted * torch.arange(1, 6)).sum().backward()
    images = flow.tensor(x.detach().numpy(), requires_grad=True)
    found = model(images)
    (found * flow.arange(1, 6)).sum().backward()
    close(found, wanted, LOGITS)
    close(images.grad, x.grad, GRADIENTS)
    assert not model.features.weight.requires_grad


def test_misuse():
    with pytest.raises(ConfigError, match="multiple of 16"):
        IResNetConfig(image_size=100)
    with flow.abstract():
        model = IResNet(IResNetConfig(depths=(1, 1, 1, 1), width=8, image_size=32, num_classes=0))
        assert model(flow.zeros(2, 3, 32, 32)).shape == (2, 64 * 4)
        with pytest.raises(OpValueError, match="images of 32 x 32"):
            model(flow.zeros(2, 3, 64, 64))
