"""``python -m sbpjax.cache info|clear``: what the cache of compiled programs and plans holds; drop it."""

from ._core.serialization.cache_folder import main as main

if __name__ == "__main__":
    main()
