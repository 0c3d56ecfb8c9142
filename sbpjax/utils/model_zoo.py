"""An older name of `sbpjax.hub`'s download."""

from sbpjax.hub import load_url as load_url
