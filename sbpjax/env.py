"""Environment of the process: its rank, the number of devices, and virtual CPU devices."""

from sbpjax.distributed.env import MIN_CPU_THREADS as MIN_CPU_THREADS
from sbpjax.distributed.env import THREADS_PER_CPU_DEVICE as THREADS_PER_CPU_DEVICE
from sbpjax.distributed.env import all_device_placement as all_device_placement
from sbpjax.distributed.env import devices_started as devices_started
from sbpjax.distributed.env import get_local_rank as get_local_rank
from sbpjax.distributed.env import get_node_size as get_node_size
from sbpjax.distributed.env import get_rank as get_rank
from sbpjax.distributed.env import get_world_size as get_world_size
from sbpjax.distributed.env import init as init
from sbpjax.distributed.env import init_rdma as init_rdma
from sbpjax.distributed.env import is_multi_client as is_multi_client
from sbpjax.distributed.env import prepare_process as prepare_process
from sbpjax.distributed.env import rdma_is_initialized as rdma_is_initialized
from sbpjax.distributed.env import set_cpu_devices as set_cpu_devices
