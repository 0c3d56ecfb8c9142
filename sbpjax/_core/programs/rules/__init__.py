"""Sharding rules of primitives by family, registered when imported."""

from . import attention as attention
from . import contraction as contraction
from . import convolution as convolution
from . import cross_entropy as cross_entropy
from . import elementwise as elementwise
from . import grouped as grouped
from . import index as index
from . import linalg as linalg
from . import manual as manual
from . import random as random
from . import reduction as reduction
from . import rows as rows
from . import shape as shape
from . import window as window
from .table import Context as Context
from .table import Moved as Moved
from .table import Strategy as Strategy
from .table import compute as compute
from .table import is_refused as is_refused
from .table import jointly_legal as jointly_legal
from .table import local as local
from .table import moved_inside as moved_inside
from .table import names as names
from .table import only_rules_of as only_rules_of
from .table import rule as rule
from .table import strategies_of as strategies_of
