"""Models of images, whose text says nothing of devices; a folder of each family as in `sbpjax.models`."""

from . import vit as vit
