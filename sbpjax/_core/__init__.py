"""The framework below the public names; only the framework imports it."""
