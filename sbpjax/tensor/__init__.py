"""The eager tensor: a handle on a payload, its views, its writes, and the ops on it."""

from . import methods as methods  # attaches operators
from . import convert as convert  # attaches to_global, numpy, item
from . import storage as storage  # attaches detach, data
from . import creation as creation  # attaches new_*
from . import views as views  # attaches view ops
from . import inplace as inplace  # attaches copy_, fill_, zero_
from . import indexing as indexing  # attaches x[...]
from .tensor import Tensor as Tensor
