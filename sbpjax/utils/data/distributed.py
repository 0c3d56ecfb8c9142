"""`DistributedSampler`: each process takes every n-th sample of one common order."""

from sbpjax.data.loading.distributed import Dataset as Dataset
from sbpjax.data.loading.distributed import DistributedSampler as DistributedSampler
from sbpjax.data.loading.distributed import Sampler as Sampler
