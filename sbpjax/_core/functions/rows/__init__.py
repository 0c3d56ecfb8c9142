"""Op table: one file of rows per family; importing this package reads all of them."""

from . import activations as activations
from . import arrange as arrange
from . import complex as complex
from . import creation as creation
from . import fft as fft
from . import index as index
from . import layers as layers
from . import linear_algebra as linear_algebra
from . import methods as methods
from . import oneflow as oneflow
from . import order as order
from . import pointwise as pointwise
from . import products as products
from . import reductions as reductions
from . import settings as settings
from . import signal as signal
from . import special as special
from . import statistics as statistics
from . import views as views
