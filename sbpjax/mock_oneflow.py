"""Import alias `oneflow` for sbpjax: a script written for OneFlow runs unchanged.

    with sbpjax.mock_oneflow.enable():
        import oneflow as flow
        import oneflow.nn as nn

It works as `sbpjax.mock_torch` does.
"""

from ._core.compat.oneflow_alias import disable as disable
from ._core.compat.oneflow_alias import enable as enable
from ._core.compat.oneflow_alias import is_enabled as is_enabled
from ._core.compat.oneflow_alias import peer as peer
