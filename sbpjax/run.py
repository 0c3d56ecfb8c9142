"""``python -m sbpjax.run --as torch script.py [args]``: run a script with a foreign name answered by sbpjax.

``--as torch`` answers to ``torch``, ``--as oneflow`` to ``oneflow``, both may be given; ``-m package.module`` runs a
module instead of a file. What stands behind the script's name is the script's own: ``sys.argv`` is as if Python ran it.
Processes that the script starts (`multiprocessing`, data workers, `subprocess`) answer to the names too.
"""

from ._core.compat.run import main as main

if __name__ == "__main__":
    main()
