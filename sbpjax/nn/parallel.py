"""`DistributedDataParallel`: data parallelism of local modules under PyTorch's name."""

from sbpjax.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
