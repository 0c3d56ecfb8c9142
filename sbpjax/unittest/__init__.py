"""`oneflow.unittest`: tests that need a number of nodes and devices, and the numbers of the run (`env`)."""

from sbpjax._core.compat.unittest_skip import TestCase as TestCase
from sbpjax._core.compat.unittest_skip import num_nodes_required as num_nodes_required
from sbpjax._core.compat.unittest_skip import skip_unless_1n1d as skip_unless_1n1d
from sbpjax._core.compat.unittest_skip import skip_unless_1n2d as skip_unless_1n2d
from sbpjax._core.compat.unittest_skip import skip_unless_1n4d as skip_unless_1n4d
from sbpjax._core.compat.unittest_skip import skip_unless_2n1d as skip_unless_2n1d
from sbpjax._core.compat.unittest_skip import skip_unless_2n2d as skip_unless_2n2d
from sbpjax._core.compat.unittest_skip import skip_unless_2n4d as skip_unless_2n4d
from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("unittest", globals(), modules="env")
