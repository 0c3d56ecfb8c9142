"""Functions behind the layers that have logic of their own; `_core.functions.nn` shows them with the others."""
