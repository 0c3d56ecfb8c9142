"""Recommendation models: click-through rate and retrieval, over tables that may be larger than a device.

    config = RecommendConfig(features=(1_000_000, 40_000, 300), dense=13)
    model = parallelize(DLRM(config), Parallel(fsdp=8))              # rows of the tables divided, the rest whole
    graph.add_optimizer(optim.SparseAdam(model.table_parameters()))
    graph.add_optimizer(optim.Adam(model.dense_parameters()))
    loss = model.loss(dense, ids, labels)                            # (B, 13), (B, 3), (B,)

All features share one table, each in a range of rows of its own; its gradient is one of rows. `sharding.py` is the
table of all of them: ``fsdp`` divides the rows of tables, ``tensor`` their columns, and both together give the 2-D
split; batches are divided over ``data`` and ``fsdp``.
"""

from .config import RecommendConfig as RecommendConfig
from .networks import DCN as DCN
from .networks import DLRM as DLRM
from .networks import DeepFM as DeepFM
from .networks import TwoTower as TwoTower
from .networks import WideDeep as WideDeep
from .tables import Tables as Tables
