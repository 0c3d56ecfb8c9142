"""Samplers: the order of a loader's samples, and their grouping into batches."""

from sbpjax.data.loading.sampler import BatchSampler as BatchSampler
from sbpjax.data.loading.sampler import RandomSampler as RandomSampler
from sbpjax.data.loading.sampler import Sampler as Sampler
from sbpjax.data.loading.sampler import Seeded as Seeded
from sbpjax.data.loading.sampler import SequentialSampler as SequentialSampler
from sbpjax.data.loading.sampler import SubsetRandomSampler as SubsetRandomSampler
from sbpjax.data.loading.sampler import T_co as T_co
from sbpjax.data.loading.sampler import WeightedRandomSampler as WeightedRandomSampler
from sbpjax.data.loading.sampler import draw_seed as draw_seed
from sbpjax.data.loading.sampler import permutation as permutation
