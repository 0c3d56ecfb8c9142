"""Pipeline parallelism: stages on separate placements that work on different micro-batches at the same time.

The user writes ``x.to_global(placement=P1)`` in ``build`` or ``set_stage``; see `sbpjax.nn.Graph`. This module
re-exports the schedules and their simulation.
"""

from sbpjax.graph.pipeline.schedule import Schedule as Schedule
from sbpjax.graph.pipeline.schedule import Slot as Slot
from sbpjax.graph.pipeline.schedule import Work as Work
from sbpjax.graph.pipeline.schedule import linear as linear
from sbpjax.graph.pipeline.schedule import schedule as schedule
from sbpjax.graph.pipeline.simulate import Simulation as Simulation
from sbpjax.graph.pipeline.simulate import simulate as simulate
from sbpjax.graph.pipeline.stages import auto_stages as auto_stages
