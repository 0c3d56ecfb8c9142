"""The eager tensor: a handle on a payload, its views, its writes, and the ops on it."""

# The order is that of what they build on; each module attaches its methods to `Tensor`.
from . import methods as methods  # isort: skip
from . import convert as convert  # isort: skip
from . import storage as storage  # isort: skip
from . import creation as creation  # isort: skip
from . import from_data as from_data  # isort: skip
from . import like as like  # isort: skip
from . import views as views  # isort: skip
from . import splitting as splitting  # isort: skip
from . import inplace as inplace  # isort: skip
from . import indexing as indexing  # isort: skip
from . import functions as functions  # isort: skip
from . import moving as moving  # isort: skip
from . import printing as printing  # isort: skip
from . import random as random  # isort: skip
from . import complex as complex  # isort: skip
from . import strided as strided  # isort: skip
from . import interop as interop  # isort: skip
from .tensor import Tensor as Tensor
