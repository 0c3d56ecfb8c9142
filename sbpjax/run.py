"""``python -m sbpjax.run --as torch script.py [args]``: run a script with ``torch`` aliased to sbpjax.

``--as torch`` answers to ``torch``, ``--as oneflow`` to ``oneflow``, both may be given; ``-m package.module`` runs a
module instead of a file. Arguments after the script's name belong to the script: ``sys.argv`` is as if Python ran it.
The aliases also hold in processes that the script starts (`multiprocessing`, data workers, `subprocess`).
"""

from ._core.compat.run import main as main

if __name__ == "__main__":
    main()
