"""A sequence tagger: embedding, a bidirectional LSTM over packed sequences, a linear-chain CRF's forward algorithm."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags) * 0.1)
        self.start = nn.Parameter(torch.zeros(tags))

    def forward(self, emissions, tags, mask):
        batch, length, _ = emissions.shape
        alpha = self.start + emissions[:, 0]
        score = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1]).squeeze(1)
        for t in range(1, length):
            step = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, dim=1) + emissions[:, t]
            alpha = torch.where(mask[:, t].unsqueeze(1), step, alpha)
            gold = self.transitions[tags[:, t - 1], tags[:, t]] + emissions[:, t].gather(1, tags[:, t : t + 1])[:, 0]
            score = score + gold * mask[:, t]
        return (torch.logsumexp(alpha, dim=1) - score).mean()


class Tagger(nn.Module):
    def __init__(self, vocab=41, dim=12, hidden=10, tags=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.0)
        self.out = nn.Linear(2 * hidden, tags)
        self.crf = CRF(tags)
        for name, p in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(p)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        states, (h, c) = self.lstm(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=words.size(1))
        return self.out(states), h, c


def build():
    return Tagger()


def example(rng):
    lengths = np.array([7, 3, 6, 5])
    words = rng.integers(1, 41, (4, 7)) * (np.arange(7)[None] < lengths[:, None])
    return {"words": words, "tags": rng.integers(0, 5, (4, 7))}


def loss(model, batch):
    mask = batch["words"] != 0
    lengths = mask.sum(1).cpu()
    emissions, h, c = model(batch["words"], lengths)
    return model.crf(emissions, batch["tags"], mask), {"emissions": emissions, "h": h, "c": c}
