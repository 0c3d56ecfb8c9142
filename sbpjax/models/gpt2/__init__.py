"""GPT-2: language model with learned positions."""

from .config import GPT2Config as GPT2Config
from .model import GPT2 as GPT2
