"""Distributed layouts of OneFlow: placements, sbp (split, broadcast, partial_sum), layouts and boxing."""

from .algebra import broadcast as broadcast
from .algebra import partial_sum as partial_sum
from .algebra import sbp as sbp
from .algebra import split as split
from .layout import Layout as Layout
from .placement import current_placement as current_placement
from .placement import placement as placement
