"""Datasets, samplers, and loaders whose workers never import JAX; re-exported as `sbpjax.utils.data`."""
