"""A function of tensors as a program: traced once, with all that it reads and writes as inputs and outputs."""
