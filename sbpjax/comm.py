"""OneFlow's older names of the collectives, ``oneflow.comm``; `sbpjax.distributed` adds groups and options."""

from ._core.compat.comm import all_gather as all_gather
from ._core.compat.comm import all_gather_into_tensor as all_gather_into_tensor
from ._core.compat.comm import all_reduce as all_reduce
from ._core.compat.comm import all_to_all as all_to_all
from ._core.compat.comm import barrier as barrier
from ._core.compat.comm import broadcast as broadcast
from ._core.compat.comm import gather as gather
from ._core.compat.comm import recv as recv
from ._core.compat.comm import reduce as reduce
from ._core.compat.comm import reduce_scatter as reduce_scatter
from ._core.compat.comm import reduce_scatter_tensor as reduce_scatter_tensor
from ._core.compat.comm import scatter as scatter
from ._core.compat.comm import send as send
