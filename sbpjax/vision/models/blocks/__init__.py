"""Parts that several families share. Shapes: B batch, C channels, H and W of a map, N tokens, D width."""

from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import activation as activation
from .drop_path import DropPath as DropPath
from .drop_path import rising as rising
from .image_model import FeatureMaps as FeatureMaps
from .image_model import ImageConfig as ImageConfig
from .image_model import ImageModel as ImageModel
from .squeeze import SqueezeExcite as SqueezeExcite
from .squeeze import divisible as divisible
