"""Host processes: usable cores, children that end with their parent, values exchanged among the processes of a run."""

from sbpjax._core.runtime.cores import cores as cores
from sbpjax._core.runtime.extras import pip_install as pip_install
from sbpjax._core.runtime.parent_death import Tie as Tie
from sbpjax._core.runtime.processes import current as current
