"""Collation of samples into a batch: `default_collate` and `default_convert`."""

from sbpjax.data.loading.collate import default_collate as default_collate
from sbpjax.data.loading.collate import default_convert as default_convert
from sbpjax.data.loading.collate import is_tensor as is_tensor
