"""Planning: which layout every value of a program takes."""

from .exact import plan_exactly as plan_exactly
from .types import Boxing as Boxing
from .types import Plan as Plan
