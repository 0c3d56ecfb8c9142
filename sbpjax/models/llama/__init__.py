"""Llama, and what differs from it by its configuration alone: Mistral, Qwen2, Qwen3."""

from .config import LlamaConfig as LlamaConfig
from .model import Llama as Llama
