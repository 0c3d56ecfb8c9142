"""Data loading: datasets, samplers, and loaders with worker processes that never import JAX.

`GlobalLoader` is fetched when it is first asked for: it needs JAX, and workers import this package without.
"""

from .collate import default_collate as default_collate
from .collate import default_convert as default_convert
from .dataloader import DataLoader as DataLoader
from .dataset import ChainDataset as ChainDataset
from .dataset import ConcatDataset as ConcatDataset
from .dataset import Dataset as Dataset
from .dataset import IterableDataset as IterableDataset
from .dataset import IterDataPipe as IterDataPipe
from .dataset import MapDataPipe as MapDataPipe
from .dataset import StackDataset as StackDataset
from .dataset import Subset as Subset
from .dataset import TensorDataset as TensorDataset
from .dataset import random_split as random_split
from .distributed import DistributedSampler as DistributedSampler
from .fetch import WorkerInfo as WorkerInfo
from .fetch import get_worker_info as get_worker_info
from .late import attribute as __getattr__  # noqa: F401
from .sampler import BatchSampler as BatchSampler
from .sampler import RandomSampler as RandomSampler
from .sampler import Sampler as Sampler
from .sampler import SequentialSampler as SequentialSampler
from .sampler import SubsetRandomSampler as SubsetRandomSampler
from .sampler import WeightedRandomSampler as WeightedRandomSampler
