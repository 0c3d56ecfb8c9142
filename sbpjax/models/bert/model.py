"""BERT: a bidirectional transformer encoder with layer norms after each sub-block.

Shapes at the line ends: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import ACTIVATIONS, MLP, Attention, attention_mask, normal_weights, positions_of, token_loss
from sbpjax.nn import functional as F

from .config import BertConfig


class Embeddings(nn.Module):
    """The sum of what a token, its position and its segment stand for, normalised.

    Args:
        config: the model's.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.drop = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: flow.Tensor, segments: flow.Tensor) -> flow.Tensor:
        """Return `(B, T, D)` of two `(B, T)`."""
        x = self.token(tokens) + self.segment(segments) + self.position(positions_of(tokens))
        return self.drop(self.norm(x))


class Block(nn.Module):
    """Attention and MLP, each added to its input and the sum normalised.

    Args:
        config: the model's.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        dropped = config.attention_probs_dropout_prob
        self.attention = Attention(config.hidden_size, config.num_attention_heads, bias=True, dropout=dropped)
        self.norm1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.mlp = MLP(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.norm2 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.drop = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: flow.Tensor, mask: flow.Tensor | None = None) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block."""
        x = self.norm1(x + self.drop(self.attention(x, mask=mask)))
        return self.norm2(x + self.drop(self.mlp(x)))


class Bert(nn.Module):
    """What the two models below share: embeddings, blocks, and a vector for the whole sequence.

    Args:
        config: its size.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)

    def encode(
        self, tokens: flow.Tensor, segments: flow.Tensor | None = None, present: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the vectors `(B, T, D)` of tokens; see `BertForPreTraining.forward`."""
        mask, _ = attention_mask(tokens, causal=False, present=present)
        x = self.embeddings(tokens, flow.zeros_like(tokens) if segments is None else segments)  # (B, T, D)
        for block in self.blocks:
            x = block(x, mask)
        return x

    def pooled(self, x: flow.Tensor) -> flow.Tensor:
        """Return the vector `(B, D)` of sequences: of their first token's, `x` `(B, T, D)`."""
        return self.pooler(x[:, 0]).tanh()


class MaskedTokens(nn.Module):
    """The logits of the tokens at all positions.

    Args:
        config: the model's.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(flow.zeros(config.vocab_size))

    def forward(self, x: flow.Tensor, embedding: flow.Tensor) -> flow.Tensor:
        """Return `(B, T, V)` of `x` `(B, T, D)` and the embedding `(V, D)`."""
        return F.linear(self.norm(self.activation(self.dense(x))), embedding, self.bias)


class BertForPreTraining(Bert):
    """Predict masked tokens, and whether a second sentence follows the first.

    Args:
        config: its size.

    Example:
        >>> config = flow.models.bert.BertConfig(
        ...     vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        ... )
        >>> tokens, follows = flow.models.bert.BertForPreTraining(config)(flow.zeros(2, 5, dtype=flow.int64))
        >>> tokens.shape, follows.shape
        (sbpjax.Size([2, 5, 64]), sbpjax.Size([2, 2]))
    """

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked = MaskedTokens(config)
        self.follows = nn.Linear(config.hidden_size, 2)
        self.apply(normal_weights(config.initializer_range))

    def forward(
        self, tokens: flow.Tensor, segments: flow.Tensor | None = None, present: flow.Tensor | None = None
    ) -> tuple[flow.Tensor, flow.Tensor]:
        """Return the logits of tokens and of pairs.

        Args:
            tokens: `(B, T)` integers, T at most `max_position_embeddings`.
            segments: `(B, T)`: to which sentence a token belongs; None for all to the first.
            present: `(B, T)`, nonzero where there is a token and not padding; None if there is no padding.

        Returns:
            ``(B, T, V)``, and ``(B, 2)``: class 0 is that the second sentence follows.
        """
        x = self.encode(tokens, segments, present)
        return self.masked(x, self.embeddings.token.weight), self.follows(self.pooled(x))

    def loss(
        self,
        tokens: flow.Tensor,
        targets: flow.Tensor,
        pairs: flow.Tensor,
        segments: flow.Tensor | None = None,
        present: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the sum of both mean cross entropies, in nats.

        Args:
            tokens: `(B, T)`.
            targets: `(B, T)`, -100 where no token is to be predicted.
            pairs: `(B,)`, 0 or 1.
            segments: as of `forward`.
            present: as of `forward`.
        """
        logits, follows = self(tokens, segments, present)
        return token_loss(logits, targets) + F.cross_entropy(follows.float(), pairs)


class BertForSequenceClassification(Bert):
    """Classify sequences.

    Args:
        config: its size; `num_labels` is the number of classes.

    Example:
        >>> config = flow.models.bert.BertConfig(
        ...     vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_labels=3
        ... )
        >>> flow.models.bert.BertForSequenceClassification(config)(flow.zeros(2, 5, dtype=flow.int64)).shape
        sbpjax.Size([2, 3])
    """

    def __init__(self, config: BertConfig):
        super().__init__(config)
        dropped = config.classifier_dropout
        self.drop = nn.Dropout(config.hidden_dropout_prob if dropped is None else dropped)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.apply(normal_weights(config.initializer_range))

    def forward(
        self, tokens: flow.Tensor, segments: flow.Tensor | None = None, present: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the logits `(B, num_labels)`; see `BertForPreTraining.forward`."""
        return self.classifier(self.drop(self.pooled(self.encode(tokens, segments, present))))

    def loss(
        self,
        tokens: flow.Tensor,
        labels: flow.Tensor,
        segments: flow.Tensor | None = None,
        present: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B,)`, in nats per sequence."""
        return F.cross_entropy(self(tokens, segments, present).float(), labels)
