"""Host processes: usable cores, children tied to their parent, exchange of values between processes."""

from sbpjax._core.runtime.cores import cores as cores
from sbpjax._core.runtime.extras import pip_install as pip_install
from sbpjax._core.runtime.parent_death import Tie as Tie
from sbpjax._core.runtime.processes import current as current
