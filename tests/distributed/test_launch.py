"""The launcher: most of it with shell scripts for ranks, which start at once."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sbpjax.distributed import launch as launcher
from sbpjax.distributed import rank_processes
from tests.distributed.running import finish, launch, start


def shell(text, ranks=2, *options, **environment):
    return launch("--nproc_per_node", ranks, "--no_python", *options, "sh", "-c", text, **environment)


def test_environment_and_prefixes():
    text = 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK $NODE_SIZE $MASTER_ADDR $SBPJAX_TIMEOUT $1"; echo no >&2'
    code, out, err = launch(
        *("--nnodes", 2, "--node_rank", 1, "--nproc_per_node", 2, "--master_port", 29123, "--no_python"),
        *("sh", "-c", text + '; echo "port $MASTER_PORT"', "sh", "extra"),
        timeout=33,
    )
    assert code == 0
    assert sorted(out.splitlines()) == [
        "[rank 2] 2/4 0 2 127.0.0.1 33.0 extra",
        "[rank 2] port 29123",
        "[rank 3] 3/4 1 2 127.0.0.1 33.0 extra",
        "[rank 3] port 29123",
    ]
    assert sorted(err.splitlines()) == ["[rank 2] no", "[rank 3] no"]


def test_that_gloo_found_all_processes_is_no_news():
    line = "[Gloo] Rank 0 is connected to {} peer ranks. Expected number of connected peer ranks is : 1"
    code, out, _ = shell(f"echo '{line.format(1)}'; echo '{line.format(0)}'; echo mine")
    wanted = [f"[rank {rank}] {text}" for rank in (0, 1) for text in (line.format(0), "mine")]
    assert code == 0 and sorted(out.splitlines()) == sorted(wanted)


def test_one_rank_has_no_prefix_and_a_free_port():
    code, out, _ = shell('echo "port $MASTER_PORT devices $SBPJAX_CPU_DEVICES"', 1, "--cpu_devices", 3)
    assert code == 0 and re.fullmatch(r"port \d+ devices 3\n", out) and "port 0" not in out


def test_failure_names_the_rank_its_code_and_last_lines():
    text = "if [ $RANK = 1 ]; then for i in $(seq 30); do echo line $i; done; echo broken >&2; exit 3; fi; sleep 100"
    begun = time.monotonic()
    code, _, err = shell(text)
    assert code == 3 and time.monotonic() - begun < 60
    assert re.search(r"launch: rank 1 \(process \d+\) exited with code 3; the other ranks are stopped", err)
    assert "the last lines of rank 1:" in err and "    line 30" in err and "    line 5\n" not in err
    assert "    broken" in err


def test_all_that_ranks_wrote_is_passed_on(tmp_path):
    """Also of those that are stopped in the wake of another, to a reader that takes its time."""
    lines = 8_000  # fewer bytes than a pipe holds, more with their prefixes
    text = (
        f"seq {lines}; touch {tmp_path}/$RANK; "
        f"if [ $RANK = 0 ]; then while [ ! -e {tmp_path}/1 ]; do sleep 0.05; done; exit 3; fi; sleep 100"
    )
    process = start("--nproc_per_node", 2, "--no_python", "sh", "-c", text)
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.05)
    time.sleep(8)
    code, out, _ = finish(process)
    assert code == 3
    for rank in range(2):
        found = [line for line in out.splitlines() if line.startswith(f"[rank {rank}] ")]
        assert len(found) == lines and found[-1] == f"[rank {rank}] {lines}"


def test_output_that_a_daemon_holds_open_is_not_waited_for():
    begun = time.monotonic()
    code, out, _ = shell("echo up; setsid sleep 60 & sleep 0.2; exit 0", 1)
    assert code == 0 and out == "up\n" and time.monotonic() - begun < 40


def test_a_program_that_cannot_be_run():
    code, _, err = launch("--nproc_per_node", 2, "--no_python", "no-such-program")
    assert code == 127 and "    cannot run 'no-such-program': No such file or directory" in err


def test_a_killed_rank():
    code, _, err = shell("if [ $RANK = 0 ]; then kill -9 $$; fi; sleep 100")
    assert code == 128 + 9 and "rank 0" in err and "was killed by SIGKILL" in err


def test_what_ranks_started_ends_with_them(tmp_path):
    (code, _, _) = shell(f"sleep 1000 & echo $! > {tmp_path}/$RANK; if [ $RANK = 0 ]; then sleep 0.5; exit 1; fi; wait")
    assert code == 1
    for rank in range(2):
        process = (tmp_path / str(rank)).read_text().strip()
        stat = Path(f"/proc/{process}/stat")
        assert not stat.exists() or stat.read_text().split()[2] == "Z"  # dead, whoever has to collect it


def test_restarts():
    text = 'echo "start $RESTART_COUNT"; if [ $RESTART_COUNT -lt 2 ]; then exit 5; fi'
    code, out, err = shell(text, 2, "--max_restarts", 2)
    assert code == 0 and out.count("start 2") == 2 and err.count("starting all ranks again") == 2
    code, out, _ = shell("exit 5", 2, "--max_restarts", 1)
    assert code == 5


def test_a_rank_may_ask_for_a_restart():
    text = f"echo start $RESTART_COUNT; if [ $RESTART_COUNT = 0 ]; then exit {launcher.EXIT_RESTART}; fi"
    code, out, err = shell(text, 1, "--max_restarts", 1)
    assert code == 0 and "start 1" in out and "starting all ranks again (as requested)" in err
    assert shell(text, 1)[0] == launcher.EXIT_RESTART  # not without --max_restarts


@pytest.mark.parametrize("number, text, wanted", [
    (signal.SIGTERM, "trap 'echo ended; exit 75' TERM; echo up; while true; do sleep 0.1; done", 75),
    (signal.SIGINT, "trap 'echo ended; exit 0' INT; echo up; while true; do sleep 0.1; done", 130),
])  # fmt: skip
def test_signals_are_passed_on(number, text, wanted):
    process = start("--nproc_per_node", 2, "--no_python", "--max_restarts", 3, "bash", "-c", text)
    for _ in range(2):
        assert process.stdout.readline().endswith("up\n")
    process.send_signal(number)
    code, out, _ = finish(process)
    assert code == wanted and out.count("ended") == 2


def test_redirected_output(tmp_path):
    options = ("--redirect_stdout_and_stderr", "--logdir", tmp_path)
    code, out, err = shell("echo out $RANK; echo err $RANK >&2; exit $RANK", 2, *options)
    assert code == 1 and out == "" and "    err 1" in err and str(tmp_path / "rank_1") in err
    assert (tmp_path / "rank_0" / "stdout").read_text() == "out 0\n"
    assert (tmp_path / "rank_1" / "stderr").read_text() == "err 1\n"


def test_modules_are_run():
    code, out, _ = launch("--nproc_per_node", 1, "-m", "base64", "-h")
    assert code == 0 and "base64" in out


@pytest.mark.parametrize("options, words", [
    (["--nproc_per_node", "0", "x"], "at least one machine and one process"),
    (["--nnodes", "2", "--node_rank", "2", "x"], "node_rank < nnodes"),
    (["-m", "--no_python", "x"], "exclude each other"),
    (["--standby", "", "--no_python", "x"], "--standby excludes"),
    (["--nnodes", "2", "--port", "0", "x"], "with several machines name one"),
    (["--nproc_per_node", "two", "x"], "invalid int value"),
    ([], "training_script"),
])  # fmt: skip
def test_bad_options(options, words, capsys):
    with pytest.raises(SystemExit) as ended:
        launcher.main(options)
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_ranks_that_ended_before_and_ranks_that_stand_still_are_named():
    text = "case $RANK in 0) sleep 1; exit 3;; 1) exit 0;; 2) kill -STOP $$;; esac"
    code, _, err = shell(text, 3)
    assert code == 3 and re.search(r"launch: rank 1 \(process \d+\) had ended before, with code 0", err)
    assert re.search(r"launch: rank 2 \(process \d+\) was stopped by a signal, and did not go on", err)


def test_good_news_of_gloo_in_pieces():
    first, second = "[Gloo] Rank 1 is connected to ", "{} peer ranks. Expected number of connected peer ranks is : 3"
    good = [first + second.format(3), first + first + second.format(3), second.format(3), first]
    good += [
        "[Gloo] Rank [Gloo] Rank 0" + first[13:] + "31 peer ranks. ",
        first[13:] + second.format(3),
        "0" + first[13:],
    ]
    assert all(map(rank_processes.is_connected_message, good))
    assert not any(map(rank_processes.is_connected_message, ["", "3", "8.0", first + second.format(2), first + "8.0"]))


def test_a_number_that_another_process_has_by_now_is_left_alone():
    ended = subprocess.Popen(["true"], start_new_session=True)
    ended.wait()
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        ended.pid = other.pid  # as the kernel gives numbers out again
        rank_processes.kill(ended, signal.SIGKILL)
        time.sleep(0.1)
        assert other.poll() is None
    finally:
        rank_processes.kill(other, signal.SIGKILL)
    assert other.wait(10) == -signal.SIGKILL


def test_what_an_ended_rank_started_is_ended_too():
    rank = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    left = int(rank.stdout.readline())
    rank.wait()
    rank_processes.kill(rank, signal.SIGKILL)
    assert rank.stdout.read() == ""  # ends with the last process that writes to it
    rank.stdout.close()
    for _ in range(1000):  # a killed process may have closed its files and not be off the processor
        if _is_gone(left):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {left} runs")


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
