"""Planning: which layout every value of a program takes."""

from .exact import plan_exactly as plan_exactly
from .loops import plan_one as plan_one
from .program import plan_program as plan_program
from .types import Boxing as Boxing
from .types import Plan as Plan
