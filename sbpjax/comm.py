"""Collectives under OneFlow's older names: ``oneflow.comm``; `sbpjax.distributed` has them with groups and options."""

from .compat.comm import all_gather as all_gather
from .compat.comm import all_gather_into_tensor as all_gather_into_tensor
from .compat.comm import all_reduce as all_reduce
from .compat.comm import all_to_all as all_to_all
from .compat.comm import barrier as barrier
from .compat.comm import broadcast as broadcast
from .compat.comm import gather as gather
from .compat.comm import recv as recv
from .compat.comm import reduce as reduce
from .compat.comm import reduce_scatter as reduce_scatter
from .compat.comm import reduce_scatter_tensor as reduce_scatter_tensor
from .compat.comm import scatter as scatter
from .compat.comm import send as send
