"""Compatibility names: aliases of torch and oneflow, and their modules without counterpart in sbpjax."""
