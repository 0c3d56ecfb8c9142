"""``python -m sbpjax.cache info|clear``: list the on-disk cache of compiled programs and plans, or clear it."""

from ._core.serialization.cache_folder import main as main

if __name__ == "__main__":
    main()
