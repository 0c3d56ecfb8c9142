"""Op table: one file of rows per family; importing this package reads all of them."""

from . import activations as activations
from . import creation as creation
from . import fft as fft
from . import index as index
from . import layers as layers
from . import linear_algebra as linear_algebra
from . import oneflow as oneflow
from . import order as order
from . import pointwise as pointwise
from . import products as products
from . import reductions as reductions
from . import special as special
from . import views as views
from . import without_op as without_op
