"""Sharding planner: chooses the layout of every value of a program."""

from sbpjax._core.programs.plan import Boxing as Boxing
from sbpjax._core.programs.plan import Plan as Plan

from .exact import plan_exactly as plan_exactly
from .loops import plan_one as plan_one
from .program import plan_program as plan_program
