"""Functions behind the layers that have logic of their own; `sbpjax.functions.nn` shows them with the others."""
