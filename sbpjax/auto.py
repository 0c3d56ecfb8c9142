"""Auto parallelism: choose layouts for a model without sbp annotations; reports on choice and alternatives.

    config.enable_auto_parallel(True, placement=p)      # in a graph: docs/how_to/auto_parallel.md
    print(graph.auto_parallel_report(x, y))

    plan = sbpjax.auto.plan(train_step, params, opt_state, batch, mesh=mesh)      # a step of plain JAX
    step = plan.jit(train_step)

`calibrate` measures costs; `keep` and `release` fix layouts for the next plan, or free them.
"""

from sbpjax._core.inspect.auto.calibrate import calibrate as calibrate
from sbpjax._core.inspect.jax_steps.plan import StepPlan as StepPlan
from sbpjax._core.inspect.jax_steps.plan import plan as plan
from sbpjax._core.planner.prices.cost import DEFAULT as DEFAULT
from sbpjax._core.planner.prices.cost import PRESETS as PRESETS
from sbpjax._core.planner.prices.cost import CostModel as CostModel
from sbpjax._core.planner.prices.cost import Link as Link
from sbpjax._core.planner.prices.cost import flops as flops
from sbpjax._core.planner.prices.cost import preset as preset
from sbpjax._core.planner.prices.links import of_placement as of_placement
from sbpjax._core.planner.prices.links import preset_of as preset_of
from sbpjax._core.planner.prices.step_time import plan_us as plan_us
from sbpjax.graph.auto.graph import keep as keep
from sbpjax.graph.auto.graph import release as release
from sbpjax.graph.auto.plan_file import Sharding as Sharding
from sbpjax.graph.auto.plan_file import load as load
