"""A plan as one SPMD program, and tensors as it finds them: lowering, compiled eager ops, conversions."""
