"""Which lines of a program make eager ops compile again and again, said once for each.

A loop over batches of ever-changing length compiles every op of its body for each: the 20th shape of an op at one line
is worth a word. The layers of a model that share a line differ in their weights, so shapes of all inputs but the first
are part of what is counted.
"""

from __future__ import annotations

import logging

from sbpjax.errors import user_line
from sbpjax.world.recent import Recent

log = logging.getLogger("sbpjax")
SAID_AT = 20

_programs = Recent(16384)
_said: set[str] = set()  # lines of the program that runs: as many as it has


def count(name: str, shapes: tuple) -> None:
    """Count a program of the user's line that is running.

    Args:
        name: the op.
        shapes: of its inputs; None for an absent one.
    """
    line = user_line()
    key = line, name, shapes[1:]
    found = (_programs.get(key) or _programs.recall(key) or 0) + 1
    _programs.keep(key, found)
    if found == SAID_AT and line not in _said:
        _said.add(line)
        text = "%s has compiled its %dth shape of %s, now %s; each takes 25 to 600 ms and some MB: pad to a few sizes"
        log.warning(text, line, found, name, list(shapes[0] or ()) if shapes else [])
