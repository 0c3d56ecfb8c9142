"""Answering to the names of other packages; the public faces are `sbpjax.mock_torch` and `sbpjax.mock_oneflow`."""

from .alias import Alias as Alias
from .missing import Missing as Missing
from .peer import Peer as Peer
from .switch import Disable as Disable
from .switch import Enable as Enable
