"""`save` and `load` under OneFlow's names, over the one checkpoint format of `sbpjax.checkpoint`."""

from sbpjax.data.save_load import checkpoint as checkpoint
from sbpjax.data.save_load import checkpoint_sequential as checkpoint_sequential
from sbpjax.data.save_load import load as load
from sbpjax.data.save_load import save as save
