"""Vision: models of images, on the public functions alone."""

from . import models as models
