"""Mixtral: Mistral with a mixture of experts in place of the MLP."""

from .config import MixtralConfig as MixtralConfig
from .model import Mixtral as Mixtral
