"""PyTorch's place for these names: distances."""

from sbpjax.nn.distance import CosineSimilarity as CosineSimilarity
from sbpjax.nn.distance import PairwiseDistance as PairwiseDistance
