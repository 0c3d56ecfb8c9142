"""Written by `make stubs` from the live package; do not edit."""
# Data loading: datasets, samplers, and loaders with worker processes that never import JAX.

import builtins

from sbpjax.utils.data.sampler import BatchSampler as BatchSampler
from sbpjax.utils.data.dataset import ChainDataset as ChainDataset
from sbpjax.utils.data.dataset import ConcatDataset as ConcatDataset
from sbpjax.utils.data.dataloader import DataLoader as DataLoader
from sbpjax.utils.data.dataset import Dataset as Dataset
from sbpjax.utils.data.distributed import DistributedSampler as DistributedSampler
from sbpjax.utils.data.global_loader import GlobalLoader as GlobalLoader
from sbpjax.utils.data.dataset import IterDataPipe as IterDataPipe
from sbpjax.utils.data.dataset import IterableDataset as IterableDataset
from sbpjax.utils.data.dataset import MapDataPipe as MapDataPipe
from sbpjax.utils.data.sampler import RandomSampler as RandomSampler
from sbpjax.utils.data.sampler import Sampler as Sampler
from sbpjax.utils.data.sampler import SequentialSampler as SequentialSampler
from sbpjax.utils.data.dataset import StackDataset as StackDataset
from sbpjax.utils.data.dataset import Subset as Subset
from sbpjax.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from sbpjax.utils.data.dataset import TensorDataset as TensorDataset
from sbpjax.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from sbpjax.utils.data.fetch import WorkerInfo as WorkerInfo
from sbpjax.utils.data import by_value as by_value
from sbpjax.utils.data import collate as collate
from sbpjax.utils.data import dataloader as dataloader
from sbpjax.utils.data import dataset as dataset
from sbpjax.utils.data.collate import default_collate as default_collate
from sbpjax.utils.data.collate import default_convert as default_convert
from sbpjax.utils.data import distributed as distributed
from sbpjax.utils.data import fetch as fetch
from sbpjax.utils.data.fetch import get_worker_info as get_worker_info
from sbpjax.utils.data import late as late
from sbpjax.utils.data import pool as pool
from sbpjax.utils.data.dataset import random_split as random_split
from sbpjax.utils.data import sampler as sampler
from sbpjax.utils.data import wire as wire
