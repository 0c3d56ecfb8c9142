"""BERT: a bidirectional transformer encoder with layer norms after each sub-block.

Shapes at the line ends: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import (
    ACTIVATIONS,
    MLP,
    Attention,
    make_attention_mask,
    make_position_ids,
    normal_weights,
    token_loss,
)
from sbpjax.nn import functional as F

from .config import BertConfig


class Embeddings(nn.Module):
    """The normalised sum of token, position and segment embeddings.

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

    def forward(self, input_ids: flow.Tensor, token_type_ids: flow.Tensor) -> flow.Tensor:
        """Return `(B, T, D)` of two `(B, T)`."""
        x = self.token(input_ids) + self.segment(token_type_ids) + self.position(make_position_ids(input_ids))
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
        """Return the stream `(B, T, D)` after the block."""
        x = self.norm1(x + self.drop(self.attention(x, mask=mask)))
        return self.norm2(x + self.drop(self.mlp(x)))


class Bert(nn.Module):
    """The body of both BERT models: embeddings, blocks, and a vector for the whole sequence.

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
        self,
        input_ids: flow.Tensor,
        token_type_ids: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the vectors `(B, T, D)` of tokens; see `BertForPreTraining.forward`."""
        mask, _ = make_attention_mask(input_ids, causal=False, attention_mask=attention_mask)
        x = self.embeddings(
            input_ids, flow.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        )  # (B, T, D)
        for block in self.blocks:
            x = block(x, mask)
        return x

    def pool(self, x: flow.Tensor) -> flow.Tensor:
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
        >>> input_ids, follows = flow.models.bert.BertForPreTraining(config)(flow.zeros(2, 5, dtype=flow.int64))
        >>> input_ids.shape, follows.shape
        (sbpjax.Size([2, 5, 64]), sbpjax.Size([2, 2]))
    """

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked = MaskedTokens(config)
        self.follows = nn.Linear(config.hidden_size, 2)
        self.apply(normal_weights(config.initializer_range))

    def forward(
        self,
        input_ids: flow.Tensor,
        token_type_ids: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> tuple[flow.Tensor, flow.Tensor]:
        """Return the logits of tokens and of pairs.

        Args:
            input_ids: `(B, T)` integers, T at most `max_position_embeddings`.
            token_type_ids: `(B, T)`: to which sentence a token belongs; None for all to the first.
            attention_mask: `(B, T)`, nonzero for tokens, 0 for padding; None if there is no padding.

        Returns:
            ``(B, T, V)``, and ``(B, 2)``: class 0 is that the second sentence follows.
        """
        x = self.encode(input_ids, token_type_ids, attention_mask)
        return self.masked(x, self.embeddings.token.weight), self.follows(self.pool(x))

    def loss(
        self,
        input_ids: flow.Tensor,
        labels: flow.Tensor,
        next_sentence_label: flow.Tensor,
        token_type_ids: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the sum of both mean cross entropies, in nats.

        Args:
            input_ids: `(B, T)`.
            labels: `(B, T)`, -100 where no token is to be predicted.
            next_sentence_label: `(B,)`, 0 or 1.
            token_type_ids: as of `forward`.
            attention_mask: as of `forward`.
        """
        logits, follows = self(input_ids, token_type_ids, attention_mask)
        return token_loss(logits, labels) + F.cross_entropy(follows.float(), next_sentence_label)


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
        self,
        input_ids: flow.Tensor,
        token_type_ids: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits `(B, num_labels)`; see `BertForPreTraining.forward`."""
        return self.classifier(self.drop(self.pool(self.encode(input_ids, token_type_ids, attention_mask))))

    def loss(
        self,
        input_ids: flow.Tensor,
        labels: flow.Tensor,
        token_type_ids: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B,)`, in nats per sequence."""
        return F.cross_entropy(self(input_ids, token_type_ids, attention_mask).float(), labels)
