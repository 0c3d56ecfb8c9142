"""Training of the models: what goes in (`data/`), and the commands that prepare it.

`data/` is light: worker processes of a loader import it without JAX.
"""
