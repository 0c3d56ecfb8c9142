"""Devices and process of `sbpjax.env`; each case in a process of its own, because devices are started once."""

import os
import subprocess
import sys
import textwrap

import pytest

COLLECTIVES = 5000


def run(code, **environment):
    """Run `code` in a fresh Python without the test run's own device settings; return the finished process."""
    env = {k: v for k, v in os.environ.items() if k not in ("NPROC", "SBPJAX_CPU_DEVICES", "XLA_FLAGS")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=env | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def printed(code, **environment):
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_environment_variable_gives_devices():
    code = "import sbpjax, jax; print(jax.device_count())"
    assert printed(code, SBPJAX_CPU_DEVICES="5") == ["5"]
    assert printed(code) == ["1"]


def test_set_cpu_devices_gives_devices():
    assert printed("import sbpjax, jax; sbpjax.env.set_cpu_devices(3); print(jax.device_count())") == ["3"]


def test_set_cpu_devices_wins_over_environment_variable():
    code = "import sbpjax, jax; sbpjax.env.set_cpu_devices(3); print(jax.device_count())"
    assert printed(code, SBPJAX_CPU_DEVICES="5") == ["3"]


def test_set_cpu_devices_after_start_is_an_error_with_the_fix():
    code = """
        import jax, sbpjax
        jax.device_count()
        sbpjax.env.set_cpu_devices(1)  # what is there already: nothing to do
        try:
            sbpjax.env.set_cpu_devices(4)
        except sbpjax.errors.DeviceStateError as error:
            print(error)
    """
    text = " ".join(printed(code))
    assert text.startswith("env.set_cpu_devices(4)")
    assert "seen: JAX has already started its devices, 1 of them CPU" in text
    assert "fix: start the program with SBPJAX_CPU_DEVICES=4" in text


@pytest.mark.parametrize("count", [0, -1, 2.0, "8", True, None])
def test_device_count_must_be_a_positive_integer(count):
    from sbpjax import env

    with pytest.raises(ValueError, match="integer of at least 1"):
        env.set_cpu_devices(count)


def test_bad_environment_variable_is_an_error():
    done = run("import sbpjax", SBPJAX_CPU_DEVICES="many")
    assert done.returncode == 1
    assert "SBPJAX_CPU_DEVICES='many'" in done.stderr and "fix:  SBPJAX_CPU_DEVICES=8" in done.stderr


@pytest.mark.parametrize(
    ("given", "devices", "pool"), [(None, 8, "32"), ("2", 8, "32"), ("200", 8, "200"), (None, 40, "160")]
)
def test_thread_pool_is_large_enough(given, devices, pool):
    code = "import os, sbpjax; print(os.environ['NPROC'])"
    environment = {"SBPJAX_CPU_DEVICES": str(devices)} | ({} if given is None else {"NPROC": given})
    assert printed(code, **environment) == [pool]


@pytest.mark.parametrize(("devices", "pool"), [(1, "2"), (4, "32")])
def test_thread_pool_is_sized_when_the_devices_start(devices, pool):
    code = f"""
        import os, jax, sbpjax
        print(os.environ["NPROC"])
        jax.config.update("jax_num_cpu_devices", {devices})
        print(jax.numpy.ones(3).sum(), jax.device_count(), os.environ["NPROC"])
    """
    assert printed(code, NPROC="2") == ["2", "3.0", str(devices), pool]


def test_late_import_on_a_small_pool_warns():
    code = """
        import jax, warnings
        jax.config.update("jax_num_cpu_devices", 4)
        jax.device_count()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import sbpjax
        print(sum(issubclass(w.category, RuntimeWarning) and "NPROC=32" in str(w.message) for w in caught))
    """
    assert printed(code, NPROC="2") == ["1"]


def test_late_import_keeps_the_devices_that_are_there_and_warns():
    code = """
        import warnings
        import jax.numpy as jnp
        before = jnp.ones(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import sbpjax
        print([w.category.__name__ for w in caught if "SBPJAX_CPU_DEVICES=4 in the environment" in str(w.message)])
        print(sbpjax.placement.all("cpu").ranks, (sbpjax.from_jax(before) + 1).sum().item())
    """
    assert printed(code, SBPJAX_CPU_DEVICES="4", NPROC="32") == ["['RuntimeWarning']", "[0]", "6.0"]


def test_import_starts_no_device():
    assert printed("import sbpjax; print(sbpjax.env.devices_started())", SBPJAX_CPU_DEVICES="8") == ["False"]


def test_one_process_answers():
    code = """
        from sbpjax import env
        print(env.get_rank(), env.get_world_size(), env.get_local_rank(), env.get_node_size(), env.devices_started())
    """
    assert printed(code) == ["0", "1", "0", "1", "False"]


@pytest.mark.slow
def test_thousands_of_queued_collectives_do_not_abort():
    # Without the larger pool XLA aborts this very loop on 2 cores within the first few hundred programs.
    code = f"""
        import sbpjax as flow
        cpu = flow.placement.all("cpu")
        x = flow.ones(8, 64, placement=cpu, sbp=flow.sbp.split(0))
        queued = []
        for _ in range({COLLECTIVES}):
            queued.append(x.sum(0).to_global(cpu, flow.sbp.broadcast))
        print(len(queued), {{float(y[0].item()) for y in queued[::500]}})
    """
    assert printed(code, SBPJAX_CPU_DEVICES="8") == [str(COLLECTIVES), "{8.0}"]
