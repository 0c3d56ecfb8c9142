"""`oneflow.boxing`: settings of how OneFlow's own runtime moves data. See `sbpjax.boxing_policy` for ours."""

from . import nccl as nccl
