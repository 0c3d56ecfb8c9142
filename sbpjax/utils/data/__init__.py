"""Data loading: datasets, samplers, and loaders with worker processes that never import JAX.

`GlobalLoader` is imported lazily: it needs JAX, and workers import this package without it.
"""

from sbpjax.data.loading.collate import default_collate as default_collate
from sbpjax.data.loading.collate import default_convert as default_convert
from sbpjax.data.loading.dataloader import DataLoader as DataLoader
from sbpjax.data.loading.dataset import ChainDataset as ChainDataset
from sbpjax.data.loading.dataset import ConcatDataset as ConcatDataset
from sbpjax.data.loading.dataset import Dataset as Dataset
from sbpjax.data.loading.dataset import IterableDataset as IterableDataset
from sbpjax.data.loading.dataset import IterDataPipe as IterDataPipe
from sbpjax.data.loading.dataset import MapDataPipe as MapDataPipe
from sbpjax.data.loading.dataset import StackDataset as StackDataset
from sbpjax.data.loading.dataset import Subset as Subset
from sbpjax.data.loading.dataset import TensorDataset as TensorDataset
from sbpjax.data.loading.dataset import random_split as random_split
from sbpjax.data.loading.distributed import DistributedSampler as DistributedSampler
from sbpjax.data.loading.fetcher import WorkerInfo as WorkerInfo
from sbpjax.data.loading.fetcher import get_worker_info as get_worker_info
from sbpjax.data.loading.lazy_import import attribute as __getattr__  # noqa: F401
from sbpjax.data.loading.sampler import BatchSampler as BatchSampler
from sbpjax.data.loading.sampler import RandomSampler as RandomSampler
from sbpjax.data.loading.sampler import Sampler as Sampler
from sbpjax.data.loading.sampler import SequentialSampler as SequentialSampler
from sbpjax.data.loading.sampler import SubsetRandomSampler as SubsetRandomSampler
from sbpjax.data.loading.sampler import WeightedRandomSampler as WeightedRandomSampler

from . import collate as collate
from . import dataloader as dataloader
from . import dataset as dataset
from . import distributed as distributed
from . import sampler as sampler
