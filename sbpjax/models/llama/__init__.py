"""Llama, and the models that differ from it only by configuration: Mistral, Qwen2, Qwen3."""

from .config import LlamaConfig as LlamaConfig
from .model import Llama as Llama
