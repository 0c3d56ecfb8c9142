import numpy as np
import oneflow as flow
from shown import show

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x

def to_tensor(image):
    return flow.tensor(image.transpose(2, 0, 1).astype(np.float32)) / 255.0

def normalise(x):
    mean, std = flow.tensor([0.5, 0.4, 0.3]), flow.tensor([0.2, 0.2, 0.1])
    return (x - mean[:, None, None]) / std[:, None, None]

class Images(flow.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform
        self.images = (np.arange(4 * 2 * 2 * 3) % 256).reshape(4, 2, 2, 3).astype(np.uint8)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.transform(self.images[i]), i % 2

for x, y in flow.utils.data.DataLoader(Images(Compose([to_tensor, normalise])), batch_size=4):
    show("x", x)
    show("y", y)
