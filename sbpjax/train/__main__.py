"""``python -m sbpjax.train CONFIG``: see `sbpjax.train.cli`."""

from .cli import main

if __name__ == "__main__":
    main()
