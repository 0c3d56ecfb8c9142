"""GPT-2."""

from .config import GPT2Config as GPT2Config
from .model import GPT2 as GPT2
