"""Turn on 64-bit types, as `import sbpjax` does for users."""

import jax

jax.config.update("jax_enable_x64", True)
