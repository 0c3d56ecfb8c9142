"""`oneflow` answered by sbpjax: a script written for OneFlow runs as it is.

    with sbpjax.mock_oneflow.enable():
        import oneflow as flow
        import oneflow.nn as nn

As `sbpjax.mock_torch`, of which it is the counterpart.
"""

from ._core.compat.oneflow_alias import disable as disable
from ._core.compat.oneflow_alias import enable as enable
from ._core.compat.oneflow_alias import is_enabled as is_enabled
from ._core.compat.oneflow_alias import peer as peer
