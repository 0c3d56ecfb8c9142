"""Train a small Llama on sequences of 16,384 tokens, each divided over eight devices."""
