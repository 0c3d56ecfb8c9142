"""A small Mixtral on eight CPU devices: experts over four of them, the batch over all."""
