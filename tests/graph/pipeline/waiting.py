"""An op that only waits: stages of a known duration, which two cores can run any number of at once.

Python callbacks do not serve: JAX runs programs that hold one while they are launched. A custom call through a C
function pointer is launched like any program, and `time.sleep` leaves the interpreter to others.
"""

import ctypes
import functools
import time

import jax
import jax.numpy as jnp

spent: list[float] = []  # how long each wait really took, in seconds: on a busy machine longer than was asked
_KIND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))


@_KIND
def _target(out, ins):
    micros = ctypes.cast(ins[0], ctypes.POINTER(ctypes.c_int))[0]
    start = time.perf_counter()
    time.sleep(micros / 1e6)
    spent.append(time.perf_counter() - start)
    ctypes.cast(out, ctypes.POINTER(ctypes.c_int))[0] = micros


@functools.cache
def _registered() -> str:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.cast(_target, ctypes.c_void_p).value, b"xla._CUSTOM_CALL_TARGET", None)
    jax.ffi.register_ffi_target("tests_pipeline_wait", capsule, platform="cpu", api_version=0)
    return "tests_pipeline_wait"


def _waited(x, seconds: float):
    micros = int(seconds * 1e6)
    call = jax.ffi.ffi_call(_registered(), jax.ShapeDtypeStruct((), jnp.int32), custom_call_api_version=1)
    done = call(jnp.int32(micros) + (x.ravel()[0] * 0).astype(jnp.int32))  # the product orders it behind x
    return x + (done - micros).astype(x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def wait(x, forward: float, backward: float):
    """Return ``x`` after some seconds; its gradient takes others."""
    return _waited(x, forward)


wait.defvjp(lambda x, f, b: (_waited(x, f), None), lambda f, b, _, g: (_waited(g, b),))
