"""Host processes: cores, children, values, commands, progress; optional packages; work outside an ambient mesh."""

from sbpjax._core.runtime.ambient_mesh import hide_mesh as hide_mesh
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh as jit_without_mesh
from sbpjax._core.runtime.commands import command_parser as command_parser
from sbpjax._core.runtime.host_limits import cores as cores
from sbpjax._core.runtime.optional_packages import LazyModule as LazyModule
from sbpjax._core.runtime.optional_packages import pip_install as pip_install
from sbpjax._core.runtime.parent_death import ProcessTie as ProcessTie
from sbpjax._core.runtime.processes import current as current
from sbpjax._core.runtime.progress import show_progress as show_progress
from sbpjax._core.runtime.signature_errors import explain_arguments as explain_arguments
