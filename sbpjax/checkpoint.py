"""Checkpoints: save and load states in any layout; safetensors and PyTorch files."""

from sbpjax.data.checkpoint.inspecting import Entry as Entry
from sbpjax.data.checkpoint.inspecting import inspect as inspect
from sbpjax.data.checkpoint.loading import load as load
from sbpjax.data.checkpoint.manager import Manager as Manager
from sbpjax.data.checkpoint.safetensors import load_safetensors as load_safetensors
from sbpjax.data.checkpoint.safetensors import open_safetensors as open_safetensors
from sbpjax.data.checkpoint.safetensors import save_safetensors as save_safetensors
from sbpjax.data.checkpoint.saving import PendingSave as PendingSave
from sbpjax.data.checkpoint.saving import save as save
from sbpjax.data.checkpoint.torch_allowed import add_safe_globals as add_safe_globals
from sbpjax.data.checkpoint.torch_allowed import safe_globals as safe_globals
from sbpjax.data.checkpoint.torch_file import load_torch as load_torch
from sbpjax.data.checkpoint.torch_file import read_torch as read_torch
