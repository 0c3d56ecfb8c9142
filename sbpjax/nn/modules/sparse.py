"""PyTorch's place for these names: tables."""

from sbpjax.nn.embedding import Embedding as Embedding
from sbpjax.nn.embedding import EmbeddingBag as EmbeddingBag
