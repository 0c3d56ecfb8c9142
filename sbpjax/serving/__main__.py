"""``python -m sbpjax.serving REPOSITORY``: entry point of the serving command, see `sbpjax.serving.cli`."""

from .cli import main

if __name__ == "__main__":
    main()
