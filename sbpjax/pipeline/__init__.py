"""Pipeline parallelism: stages on placements of their own, working on micro-batches at once.

The user writes ``x.to_global(placement=P1)`` in ``build`` or ``set_stage``; see `sbpjax.nn.Graph`. Here are the
schedules, and what can be asked of them on paper.
"""

from .schedule import Schedule as Schedule
from .schedule import Slot as Slot
from .schedule import Work as Work
from .schedule import linear as linear
from .schedule import schedule as schedule
from .simulate import Simulation as Simulation
from .simulate import simulate as simulate
from .stages import auto_stages as auto_stages
