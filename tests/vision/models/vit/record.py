"""What timm computes with a tiny random ViT: ``python -m tests.vision.models.vit.record``, where timm is installed.

`data/timm.safetensors` has the weights by timm's names, `data/facts.npz` images and logits. timm is no test dependency,
so the tests read what is recorded.
"""

from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
VERSION = "1.0.31"  # of timm
SIZE = {"image_size": 12, "patch_size": 4, "num_channels": 3, "hidden_size": 16, "num_hidden_layers": 2}
SIZE |= {"num_attention_heads": 4, "intermediate_size": 24, "num_labels": 5}


def main():
    import timm
    import torch
    from safetensors.torch import save_file

    assert timm.__version__ == VERSION
    torch.manual_seed(0)
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=12, patch_size=4, in_chans=3, num_classes=5, embed_dim=16, depth=2, num_heads=4, mlp_ratio=1.5
    )
    for parameter in model.parameters():  # far from what a model without one of its layers would give
        parameter.data += 0.2 * torch.randn_like(parameter)
    images = torch.randn(3, 3, 12, 12)
    logits = model.eval()(images).detach()
    DATA.mkdir(exist_ok=True)
    save_file(model.state_dict(), DATA / "timm.safetensors")
    np.savez(DATA / "facts.npz", images=images.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    main()
