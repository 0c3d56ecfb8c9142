"""``python -m sbpjax``: the list of commands; ``python -m sbpjax NAME …`` runs one."""

from ._core.runtime.commands import main as main

if __name__ == "__main__":
    main()
