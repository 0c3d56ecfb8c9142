"""Vision models: classification, detection, segmentation.

`create_model` makes one by name, `list_models` has the names. A family is a file; parts that several share are in
`blocks/`. A family whose parameters a table lays out over a mesh is a folder as in `sbpjax.models`.
"""

from . import blocks as blocks
from . import convnext as convnext
from . import efficientnet as efficientnet
from . import iresnet as iresnet
from . import res2net as res2net
from . import resnet as resnet
from . import rexnet as rexnet
from . import swin as swin
from . import vit as vit
from .checkpoint import load_checkpoint as load_checkpoint
from .checkpoint import save_checkpoint as save_checkpoint
from .from_hub import from_hub as from_hub
from .registry import create_model as create_model
from .registry import list_models as list_models
from .registry import model_config as model_config
from .registry import register_model as register_model
