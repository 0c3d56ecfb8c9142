"""A byte-level GPT on real English text, on one device or on eight, by one command: ``python -m examples.gpt.train``."""
