"""Data parallelism of local modules under PyTorch's names: over processes, and over the devices of one."""

from sbpjax.distributed.data_parallel import DataParallel as DataParallel
from sbpjax.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from sbpjax.distributed.data_parallel import data_parallel as data_parallel
