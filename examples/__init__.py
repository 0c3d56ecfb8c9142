"""Complete programs on sbpjax's public API."""
