"""Auto parallelism: layouts for a model whose author says nothing of sbp; how it chose, and what else would cost.

    config.enable_auto_parallel(True, placement=p)      # in a graph: docs/auto.md
    print(graph.auto_parallel_report(x, y))

`calibrate` measures prices, `keep` and `release` say what the next plan may touch.
"""

from sbpjax.graph.auto import keep as keep
from sbpjax.graph.auto import release as release
from sbpjax.sbp.cost import PRESETS as PRESETS
from sbpjax.sbp.cost import CostModel as CostModel
from sbpjax.sbp.cost import Link as Link
from sbpjax.sbp.cost import preset as preset

from .calibrate import calibrate as calibrate
from .plan_file import Sharding as Sharding
from .plan_file import load as load
