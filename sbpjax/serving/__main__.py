"""``python -m sbpjax.serving REPOSITORY``: see `sbpjax.serving.cli`."""

from .cli import main

if __name__ == "__main__":
    main()
