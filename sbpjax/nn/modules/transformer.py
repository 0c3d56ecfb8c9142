"""PyTorch's place for these names: transformers."""

from sbpjax.nn.transformer import Transformer as Transformer
from sbpjax.nn.transformer import TransformerDecoder as TransformerDecoder
from sbpjax.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from sbpjax.nn.transformer import TransformerEncoder as TransformerEncoder
from sbpjax.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
