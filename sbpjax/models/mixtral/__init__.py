"""Mixtral: Mistral's blocks with a mixture of experts in the place of the MLP."""

from .config import MixtralConfig as MixtralConfig
from .model import Mixtral as Mixtral
