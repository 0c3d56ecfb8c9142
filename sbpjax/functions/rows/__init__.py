"""The rows of the table of ops, a file per family; importing this package reads them all."""

from . import activations as activations
from . import arrange as arrange
from . import complex as complex
from . import index as index
from . import inside as inside
from . import kernels as kernels
from . import layers as layers
from . import linear_algebra as linear_algebra
from . import making as making
from . import methods as methods
from . import order as order
from . import others as others
from . import parts as parts
from . import pointwise as pointwise
from . import products as products
from . import reductions as reductions
from . import special as special
from . import statistics as statistics
