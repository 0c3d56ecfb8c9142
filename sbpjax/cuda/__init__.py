"""GPU management under the names of `torch.cuda` and `oneflow.cuda`.

Without a GPU, `is_available` is False and counts are 0; a function that needs one raises an error.
"""

from sbpjax._core.compat.cuda.devices import current_device as current_device
from sbpjax._core.compat.cuda.devices import device as device
from sbpjax._core.compat.cuda.devices import device_count as device_count
from sbpjax._core.compat.cuda.devices import get_arch_list as get_arch_list
from sbpjax._core.compat.cuda.devices import get_device_capability as get_device_capability
from sbpjax._core.compat.cuda.devices import get_device_name as get_device_name
from sbpjax._core.compat.cuda.devices import get_device_properties as get_device_properties
from sbpjax._core.compat.cuda.devices import init as init
from sbpjax._core.compat.cuda.devices import is_available as is_available
from sbpjax._core.compat.cuda.devices import is_bf16_supported as is_bf16_supported
from sbpjax._core.compat.cuda.devices import is_initialized as is_initialized
from sbpjax._core.compat.cuda.devices import set_device as set_device
from sbpjax._core.compat.cuda.devices import synchronize as synchronize
from sbpjax._core.compat.cuda.memory import empty_cache as empty_cache
from sbpjax._core.compat.cuda.memory import ipc_collect as ipc_collect
from sbpjax._core.compat.cuda.memory import max_memory_allocated as max_memory_allocated
from sbpjax._core.compat.cuda.memory import max_memory_reserved as max_memory_reserved
from sbpjax._core.compat.cuda.memory import mem_get_info as mem_get_info
from sbpjax._core.compat.cuda.memory import memory_allocated as memory_allocated
from sbpjax._core.compat.cuda.memory import memory_reserved as memory_reserved
from sbpjax._core.compat.cuda.memory import memory_stats as memory_stats
from sbpjax._core.compat.cuda.memory import memory_summary as memory_summary
from sbpjax._core.compat.cuda.memory import reset_max_memory_allocated as reset_max_memory_allocated
from sbpjax._core.compat.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from sbpjax._core.compat.cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from sbpjax._core.compat.cuda.random import default_generators as default_generators
from sbpjax._core.compat.cuda.random import get_rng_state as get_rng_state
from sbpjax._core.compat.cuda.random import get_rng_state_all as get_rng_state_all
from sbpjax._core.compat.cuda.random import initial_seed as initial_seed
from sbpjax._core.compat.cuda.random import manual_seed as manual_seed
from sbpjax._core.compat.cuda.random import manual_seed_all as manual_seed_all
from sbpjax._core.compat.cuda.random import seed as seed
from sbpjax._core.compat.cuda.random import seed_all as seed_all
from sbpjax._core.compat.cuda.random import set_rng_state as set_rng_state
from sbpjax._core.compat.cuda.random import set_rng_state_all as set_rng_state_all
from sbpjax._core.compat.cuda.streams import Event as Event
from sbpjax._core.compat.cuda.streams import Stream as Stream
from sbpjax._core.compat.cuda.streams import current_stream as current_stream
from sbpjax._core.compat.cuda.streams import default_stream as default_stream
from sbpjax._core.compat.cuda.streams import stream as stream

from .._core.tensor.creation.from_data import BoolTensor as BoolTensor
from .._core.tensor.creation.from_data import ByteTensor as ByteTensor
from .._core.tensor.creation.from_data import CharTensor as CharTensor
from .._core.tensor.creation.from_data import DoubleTensor as DoubleTensor
from .._core.tensor.creation.from_data import FloatTensor as FloatTensor
from .._core.tensor.creation.from_data import HalfTensor as HalfTensor
from .._core.tensor.creation.from_data import IntTensor as IntTensor
from .._core.tensor.creation.from_data import LongTensor as LongTensor
from . import amp as amp
