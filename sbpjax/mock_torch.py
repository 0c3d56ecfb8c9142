"""Import alias `torch` for sbpjax: a script written for PyTorch runs unchanged.

    with sbpjax.mock_torch.enable():
        import torch.nn.functional as F
        from transformers_like import Model      # its own `import torch` resolves here, too

As a plain call, ``sbpjax.mock_torch.enable()`` holds until its ``.disable()``; ``python -m sbpjax.run --as torch
script.py`` wraps a whole script. Names are looked up when used; a name that sbpjax lacks raises an error with its full
path, and ``hasattr`` is False. The real PyTorch, if it is loaded, is set aside and comes back unchanged.
"""

from ._core.compat.torch_alias import disable as disable
from ._core.compat.torch_alias import enable as enable
from ._core.compat.torch_alias import is_enabled as is_enabled
from ._core.compat.torch_alias import peer as peer
