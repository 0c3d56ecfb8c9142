"""The autograd tape: backward engine, grad modes, custom functions, saved-tensor hooks."""
