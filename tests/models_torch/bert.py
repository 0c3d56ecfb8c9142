"""BERT: three embeddings, padding as an additive mask, a masked-language and a next-sentence head, tied weights."""

import math
from typing import NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import CrossEntropyLoss


class Outputs(NamedTuple):
    sequence: torch.Tensor
    pooled: torch.Tensor


class Embeddings(nn.Module):
    def __init__(self, vocab=53, positions=32, types=2, dim=32):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, dim, padding_idx=0)
        self.position_embeddings = nn.Embedding(positions, dim)
        self.token_type_embeddings = nn.Embedding(types, dim)
        self.LayerNorm = nn.LayerNorm(dim, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, input_ids: torch.LongTensor, token_type_ids: Optional[torch.LongTensor] = None) -> torch.Tensor:
        length = input_ids.size()[1]
        if token_type_ids is None:
            token_type_ids = torch.zeros(input_ids.size(), dtype=torch.long, device=input_ids.device)
        e = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        e += self.position_embeddings(self.position_ids[:, :length])
        return self.LayerNorm(e)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.dense, self.norm = nn.Linear(dim, dim), nn.LayerNorm(dim, eps=1e-12)

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.size()[:-1], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, hidden: torch.Tensor, mask: Optional[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
        q, k, v = (self.transpose_for_scores(f(hidden)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        probs = nn.functional.softmax(scores, dim=-1)
        context = torch.einsum("bhqk,bhkd->bqhd", probs, v)
        context = context.reshape(context.size()[:-2] + (-1,))
        return self.norm(self.dense(context) + hidden), probs


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = SelfAttention(dim, heads)
        self.intermediate, self.output = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, hidden, mask=None):
        hidden, _ = self.attention(hidden, mask)
        return self.norm(self.output(nn.functional.gelu(self.intermediate(hidden))) + hidden)


class Pooler(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dense, self.activation = nn.Linear(dim, dim), nn.Tanh()

    def forward(self, hidden):
        return self.activation(self.dense(hidden[:, 0]))


class Bert(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.embeddings = Embeddings(dim=dim)
        self.encoder = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.pooler = Pooler(dim)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        mask = None
        if attention_mask is not None:
            mask = attention_mask[:, None, None, :].to(dtype=next(self.parameters()).dtype)
            mask = (1.0 - mask) * torch.finfo(mask.dtype).min
        hidden = self.embeddings(input_ids, token_type_ids)
        for layer in self.encoder:
            hidden = layer(hidden, mask)
        return Outputs(hidden, self.pooler(hidden))


class ForPreTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = Bert()
        dim = self.bert.pooler.dense.in_features
        self.transform = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.decoder = nn.Linear(dim, self.bert.embeddings.word_embeddings.num_embeddings, bias=False)
        self.decoder.weight = self.bert.embeddings.word_embeddings.weight
        self.bias = nn.Parameter(torch.zeros(self.decoder.out_features))
        self.seq_relationship = nn.Linear(dim, 2)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.weight.data.normal_(mean=0.0, std=0.05)
                if module.padding_idx is not None:
                    module.weight.data[module.padding_idx].zero_()

    def forward(self, input_ids, attention_mask, token_type_ids, labels=None, next_sentence_label=None):
        out = self.bert(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        scores, relation = self.decoder(self.transform(out.sequence)) + self.bias, self.seq_relationship(out.pooled)
        if labels is None:
            return scores, relation
        criterion = CrossEntropyLoss()
        masked = criterion(scores.view(-1, scores.size(-1)), labels.view(-1))
        return masked + criterion(relation.view(-1, 2), next_sentence_label.view(-1)), scores, relation


def build():
    return ForPreTraining()


def example(rng):
    ids = rng.integers(1, 53, (4, 14))
    lengths = np.array([14, 9, 11, 6])
    mask = (np.arange(14)[None] < lengths[:, None]).astype(np.int64)
    labels = np.where((rng.random((4, 14)) < 0.3) & (mask == 1), ids, -100)
    return {
        "input_ids": ids * mask,
        "attention_mask": mask,
        "token_type_ids": (np.arange(14)[None] >= lengths[:, None] // 2).astype(np.int64),
        "labels": labels,
        "next_sentence_label": rng.integers(0, 2, (4,)),
    }


def loss(model, batch):
    value, scores, relation = model(**batch)
    return value, {"scores": scores, "relation": relation}
