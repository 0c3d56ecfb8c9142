"""``python -m sbpjax.train CONFIG``: entry point of the training command, see `sbpjax.train.cli`."""

from .cli import main

if __name__ == "__main__":
    main()
