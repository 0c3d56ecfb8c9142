"""Mistakes of one rank, and what befalls it: all ranks end, or go on, with a text that names the rank and the cause."""

import re
import time

import pytest

from .running import SCRIPTS, launch

TIMEOUT_S = 15
# What a rank does from which there is no way back, and what all ranks' output says about it.
FATAL = {
    "a_kill": ["launch: rank 1 .* was killed by SIGKILL"],
    "an_error_in_user_code": ["launch: rank 1 .* exited with code 1", "    ValueError: this is rank 1's error"],
    "an_exit_with_a_code": ["launch: rank 0 .* exited with code 7"],
    "an_early_end_before_a_barrier": [r"ranks \[1\] of \[0, 1\] did not come; rank 1 has come to the end"],
    "an_early_end_of_rank_0": [r"ranks \[0\] of \[0, 1\] did not come; rank 0 has come to the end"],
    "another_number_of_steps": [
        rf"rank 0 waited {TIMEOUT_S} s for other ranks in a program, at .*fatal.py:\d+; ranks \[1\] have come to",
    ],
    "a_read_on_one_rank": [r"ranks \[0\]: the first run of mul .*; ranks \[1\]: the first run of sum"],
    "a_known_read_on_one_rank": [
        rf"rank 0 waited {TIMEOUT_S} s for other ranks in a program, at .*fatal.py:\d+",
        r"\[rank 1\] sbpjax: rank 1 is at .*fatal.py:\d+",
    ],
    "an_error_in_a_data_worker": ["launch: rank 1 .* exited with code 1", "KeyError: 'sample 3 is broken'"],
    "a_kill_of_the_coordinator": ["launch: rank 0 .* was killed by SIGKILL"],
    "a_rank_that_sleeps": [rf"ranks \[1\] of \[0, 1\] did not come; waited {TIMEOUT_S} s"],
    "a_stopped_rank": ["launch: rank 1 .* was stopped by a signal"],
    "a_stopped_rank_in_a_program": ["launch: rank 1 .* was stopped by a signal"],
    "a_rank_that_vanishes": ["launch: rank 1 .* had ended before, with code 0"],
}
SAMPLE = ["an_error_in_user_code", "an_early_end_before_a_barrier"]


# Of the few no one waits for the timeout, so it may be long: a busy machine starts processes slowly.
@pytest.mark.parametrize(
    "names, timeout_s",
    [(SAMPLE, 120), pytest.param(list(FATAL), TIMEOUT_S, marks=pytest.mark.exhaustive)],
    ids=["few", "all"],
)
def test_what_ends_one_rank_ends_all_within_the_timeout(names, timeout_s):
    begun = time.monotonic()
    options = ["--nproc_per_node", 2, "--cpu_devices", 1, "--max_restarts", len(names)]
    code, out, err = launch(*options, SCRIPTS / "fatal.py", *names, timeout=timeout_s)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    assert out.count("of 2 passed") == 2
    assert time.monotonic() - begun < (len(names) + 1) * (2 * timeout_s + 20)  # the start of two processes included
    parts = re.split(r"launch: starting all ranks again .*\n", err)
    assert len(parts) == len(names) + 1
    for name, text in zip(names, parts, strict=False):
        for words in FATAL[name]:
            assert re.search(words, text), f"{name}: no {words!r} in\n{text}"
