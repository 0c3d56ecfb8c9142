"""Reads damaged files of one family under a limit of memory: ``python -m tests.fuzz.worker FAMILY SEED COUNT FOLDER``.

Before each case its number is written down, so whoever started this knows which one ended the process. What was read
is searched for a pattern that lies in freed memory and in no file.
"""

import json
import os
import random
import resource
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

import sbpjax as flow
from tests.fuzz.data_families import FAMILIES
from tests.fuzz.families import arrays_of

CANARY = b"\xa5FoReIgN"
MORE_MEMORY = 3 * 2**30
CASE_SECONDS = 20


def sow():
    """Leave the pattern in memory that is free now, in pieces small and large."""
    pieces = [np.frombuffer(bytearray(CANARY * n), np.uint8) for n in (2, 8, 64, 300, 1024, 2**14)]
    return len(pieces)


def copied(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def one(family, whole, folder, wanted, r):
    """Return how a case went: "same", "refused", "other", or what is wrong."""
    copied(whole, folder)
    plain = family.damage(folder, r)
    files = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert CANARY not in files
    sow()
    try:
        found = [a.tobytes() for a in arrays_of(family.read(folder))]
    except family.documented as error:
        return "refused" if "\n  fix:  " in str(error) else f"wrong: {type(error).__name__} without its four parts"
    except Exception as error:
        return f"wrong: {type(error).__name__}: {str(error)[:200]}"
    if any(CANARY in data for data in found):
        return "wrong: foreign bytes"
    if sorted(found) == wanted:
        return "same"
    return "wrong: other values" if plain and family.exact else "other"


def main(name, seed, count, folder):
    family, folder = FAMILIES[name](), Path(folder)
    whole, case = folder / "whole", folder / "case"
    whole.mkdir(parents=True)
    flow.manual_seed(0)
    family.make(whole)
    wanted = sorted(a.tobytes() for a in arrays_of(family.read(whole)))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    tally, wrong = {}, []
    with open(folder / "at", "w") as at:
        for number in range(count):
            at.seek(0)
            at.write(f"{number}\n")
            at.flush()
            signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)  # of the processor; ends the process
            signal.alarm(10 * CASE_SECONDS)  # and one that waits
            how = one(family, whole, case, wanted, random.Random(f"{name} {seed} {number}"))
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            tally[how.partition(":")[0]] = tally.get(how.partition(":")[0], 0) + 1
            if how.startswith("wrong"):
                wrong.append([number, how])
    print(json.dumps({"tally": tally, "wrong": wrong[:20]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
