"""Datasets: map-style (samples by index) and iterable ones, and their combinations."""

from sbpjax.data.loading.dataset import ChainDataset as ChainDataset
from sbpjax.data.loading.dataset import ConcatDataset as ConcatDataset
from sbpjax.data.loading.dataset import Dataset as Dataset
from sbpjax.data.loading.dataset import IterableDataset as IterableDataset
from sbpjax.data.loading.dataset import IterDataPipe as IterDataPipe
from sbpjax.data.loading.dataset import MapDataPipe as MapDataPipe
from sbpjax.data.loading.dataset import StackDataset as StackDataset
from sbpjax.data.loading.dataset import Subset as Subset
from sbpjax.data.loading.dataset import T as T
from sbpjax.data.loading.dataset import T_co as T_co
from sbpjax.data.loading.dataset import TensorDataset as TensorDataset
from sbpjax.data.loading.dataset import random_split as random_split
