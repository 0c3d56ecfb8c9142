"""What a test run has: nodes, devices, processes; the names are OneFlow's, and so are its variables."""

from sbpjax._core.compat.unittest_env import device_num as device_num
from sbpjax._core.compat.unittest_env import eager_execution_enabled as eager_execution_enabled
from sbpjax._core.compat.unittest_env import has_node_list as has_node_list
from sbpjax._core.compat.unittest_env import has_world_size as has_world_size
from sbpjax._core.compat.unittest_env import node_list as node_list
from sbpjax._core.compat.unittest_env import node_size as node_size
from sbpjax._core.compat.unittest_env import typing_check_enabled as typing_check_enabled
from sbpjax._core.compat.unittest_env import world_size as world_size
