"""Vision: models of images, on the public functions alone."""

from . import models as models
from .models import create_model as create_model
from .models import list_models as list_models
from .models import register_model as register_model
