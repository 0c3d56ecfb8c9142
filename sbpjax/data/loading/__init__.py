"""Datasets, samplers, and loaders whose workers never import JAX; the face is `sbpjax.utils.data`."""
