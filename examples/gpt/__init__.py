"""A byte-level GPT on real English text, on one device or eight: ``python -m examples.gpt.train``."""
