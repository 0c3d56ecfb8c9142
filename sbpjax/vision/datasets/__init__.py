"""Image datasets: a folder per class, CIFAR, COCO, Pascal VOC; decoded by Pillow.

    photos = ImageFolder("imagenet/train", transform=ways, on_error="skip")
    loader = flow.utils.data.DataLoader(photos, batch_size=64, num_workers=2)

* `base.py`: numbered samples, transforms, files that cannot be read; `reading.py`: files of images.
* `folder.py`, `cifar.py`: pairs of an image and its class.
* `coco.py`, `voc.py`: dicts with boxes; `masks.py`: polygons and runs as masks.

Worker processes of a loader import this folder without JAX.
"""

from .base import VisionDataset as VisionDataset
from .cifar import Cifar as Cifar
from .cifar import CifarFiles as CifarFiles
from .coco import CocoDetection as CocoDetection
from .coco import mask_of as mask_of
from .folder import ImageFolder as ImageFolder
from .reading import ImageFileError as ImageFileError
from .reading import find_images as find_images
from .reading import read_image as read_image
from .voc import VocDetection as VocDetection
