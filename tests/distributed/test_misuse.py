"""Mistakes of one rank, and what befalls it: all ranks end, or go on, with a text that names the rank and the cause."""

import re
import sys
import time

import pytest

from tests.distributed.running import SCRIPTS, launch

TIMEOUT_S = 15
# What a rank does from which there is no way back, and what all ranks' output says about it.
FATAL = {
    "a_kill": ["launch: rank 1 .* was killed by SIGKILL"],
    "an_error_in_user_code": ["launch: rank 1 .* exited with code 1", "    ValueError: this is rank 1's error"],
    "an_exit_with_a_code": ["launch: rank 0 .* exited with code 7"],
    "an_early_end_before_a_barrier": [
        r"ranks \[1\] of \[0, 1\] did not come; rank 1 has come to the end",
        "launch: rank 1 came to the end of the program while other ranks went on: look there first; rank 0",
    ],
    "an_early_end_of_rank_0": [r"ranks \[0\] of \[0, 1\] did not come; rank 0 has come to the end"],
    "another_number_of_steps": [
        rf"\[rank {rank}\]   seen: rank 0: sum .* at .*fatal.py:\d+; "
        r"rank 1 has come to the end of its program after \d+ calls\n.*\n.*"
        r"  fix:  look why that rank ended: as many batches on every rank \(drop_last=True\)"
        for rank in range(2)
    ],
    "a_loss_read_on_one_rank_after_a_while": [
        words
        for rank in range(2)
        for words in (
            rf"\[rank {rank}\] sbpjax: ranks differ \(found by rank 1\): call \d+ of ranks \[0, 1\] together differs",
            rf"\[rank {rank}\]   seen: rank 0: identity .* at .*fatal.py:\d+; rank 1: .* at .*fatal.py:\d+",
            rf"\[rank {rank}\]   fix: .*; a value that is read, is read by all: value = x.item\(\) on every rank",
        )
    ],
    "an_error_while_others_are_in_a_step": [
        "launch: rank 1 .* exited with code 1",
        "    ValueError: this is rank 1's error",
    ],
    "another_learning_rate_in_eager_mode": [
        rf"\[rank {rank}\]   seen: rank 0: optimizer step by sgd of 2 parameters with lr 0.1, momentum 0, .* at .*; "
        r"rank 1: optimizer step by sgd of 2 parameters with lr 0.2, momentum 0, .* at .*fatal.py:\d+"
        for rank in range(2)
    ],
    "another_learning_rate": [
        rf"\[rank {rank}\]   seen: rank 0: Step.build.* with lr 0.1 at .*fatal.py:\d+; rank 1: Step.* with lr 0.2 at"
        for rank in range(2)
    ],
    "another_last_call": [
        rf"\[rank {rank}\]   seen: rank 0: mul .* at .*fatal.py:\d+; rank 1: add .* at .*fatal.py:\d+"
        for rank in range(2)
    ],
    "a_read_on_one_rank": [r"ranks \[0\]: the first run of mul .*; ranks \[1\]: the first run of sum"],
    "a_known_read_on_one_rank": [
        rf"rank 0 waited {TIMEOUT_S} s for other ranks in a program, at .*fatal.py:\d+",
        r"\[rank 1\] sbpjax: rank 1 is at .*fatal.py:\d+",
        r"  rule: reading a global tensor is collective: item\(\).*\n.*fix:  value = x.item\(\) on every rank",
    ],
    "an_item_on_one_rank": [
        r"seen: ranks \[0\]: the first run of .*; ranks \[1\]: barrier\(\)",
        r"  rule: reading a global tensor is collective: item\(\).*\n.*fix:  value = x.item\(\) on every rank",
    ],
    "a_local_among_global_tensors": [r"fix:  x.to_global\(.*split\(0\)\]\) where each process has its own rows"],
    "an_error_in_a_data_worker": ["launch: rank 1 .* exited with code 1", "KeyError: 'sample 3 is broken'"],
    "a_kill_of_the_coordinator": ["launch: rank 0 .* was killed by SIGKILL"],
    "a_rank_that_sleeps": [rf"ranks \[1\] of \[0, 1\] did not come; waited {TIMEOUT_S} s"],
    "a_stopped_rank": ["launch: rank 1 .* was stopped by a signal"],
    "a_stopped_rank_in_a_program": ["launch: rank 1 .* was stopped by a signal"],
    "a_rank_that_vanishes": ["launch: rank 1 .* had ended before, with code 0"],
}
SAMPLE = [
    "an_error_in_user_code",
    "an_early_end_before_a_barrier",
    "another_learning_rate",
    "another_last_call",
    "an_item_on_one_rank",
    "a_loss_read_on_one_rank_after_a_while",
    "another_learning_rate_in_eager_mode",
]


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


def test_a_connection_that_breaks_is_the_error_of_the_rank_that_broke_it():
    """Each rank lives on in its shell for a while, or the launcher would end rank 0 before it says anything."""
    script = f"{sys.executable} {SCRIPTS / 'fatal.py'} an_error_while_others_are_in_a_step"
    line = f"export SBPJAX_LAUNCHED=$$; {script}; code=$?; sleep 5; exit $code"
    code, out, err = launch("--nproc_per_node", 2, "--cpu_devices", 1, "--no_python", "bash", "-c", line, limit_s=90)
    assert code == 1, f"{out[-2000:]}\n{err[-6000:]}"
    (error_text,) = re.findall(r"\[rank 0\] sbpjax.errors.LostRankError: a program .*(?:\n\[rank 0\]   .*)+", err)
    assert re.search(
        r"seen: rank 1 failed: ValueError: this is rank 1's error; here .*Gloo .*closed by peer", error_text
    )
