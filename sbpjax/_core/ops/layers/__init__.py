"""Ops of layers: activations, normalization, embedding, recurrence, 8-bit products."""
