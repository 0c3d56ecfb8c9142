"""T5: encoder-decoder model of text."""

from .config import T5Config as T5Config
from .model import T5 as T5
