"""SPMD compiler: lowering of plans, compiled eager ops, and layout conversions of arrays."""
