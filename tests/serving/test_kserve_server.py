"""KServe's server over the same repository: answers, doors, requests that are none. It runs in a process of its own.

KServe wants another protobuf than the lock of the tests: ``SBPJAX_KSERVE_PYTHON`` names the Python of an environment
that has it, and what sbpjax needs.
"""

import json
import os
import random
import socket
import subprocess
import sys
import time
from importlib import util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.serving import cli

from .support import exported
from .test_faults import CLOSE, X, damaged, malformed
from .test_triton import ask, free_port, output_of, request_of

PYTHON = os.environ.get("SBPJAX_KSERVE_PYTHON") or (sys.executable if util.find_spec("kserve") else None)
needs_kserve = pytest.mark.skipif(PYTHON is None, reason="needs kserve: SBPJAX_KSERVE_PYTHON names its Python")
TOKEN = {"authorization": "Bearer secret-token"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    model = exported(folder)
    command = [PYTHON, "-m", "sbpjax.serving", str(folder), "--server", "kserve", "--http-port", str(port)]
    with open(folder / ".log", "wb") as log:
        process = subprocess.Popen([*command, "--token", "secret-token"], stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            try:
                if ask(f"http://127.0.0.1:{port}/v2/health/ready")[0] == 200:
                    break
            except OSError:
                time.sleep(0.2)
        assert process.poll() is None, (folder / ".log").read_text()[-3000:]
        yield process, model, port
    finally:
        process.terminate()
        process.wait(40)


@needs_kserve
def test_answers_doors_and_malformed_requests(served):
    process, model, port = served
    url, wanted = f"http://127.0.0.1:{port}/v2/models/mlp", model(flow.tensor(X)).numpy()
    status, answer = ask(f"{url}/infer", request_of(X), TOKEN)
    assert status == 200 and np.allclose(output_of(answer), wanted, **CLOSE)
    metadata = json.loads(ask(url, None, TOKEN)[1])
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 6]}]
    assert ask(f"{url}/infer", request_of(X))[0] == 401
    assert ask(f"{url}/infer", b" " * (65 * 2**20), TOKEN)[0] == 413
    status, answer = ask(f"{url}/infer", request_of(np.ones((17, 6), np.float32)), TOKEN)
    assert status == 400 and b"1 to 16" in answer
    rnd, right = random.Random(0), request_of(X)
    for i in range(200):
        body, headers = malformed(rnd, right) if i % 2 else (damaged(rnd, right), {})
        assert ask(f"{url}/infer", body, {**headers, **TOKEN})[0] in (200, 400, 404, 422, 500, 501), body
    assert process.poll() is None
    assert np.allclose(output_of(ask(f"{url}/infer", right, TOKEN)[1]), wanted, **CLOSE)


@needs_kserve
def test_it_listens_on_this_machine_only(served):
    # 127.0.0.2 is this machine too, and what listens on all addresses would answer there.
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", served[2]), timeout=5):
        pass


def test_a_missing_package_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    exported(tmp_path)
    monkeypatch.setitem(sys.modules, "kserve", None)
    with pytest.raises(SystemExit, match=r'(?s)ServingError: .*by kserve.*rule: .*fix: .*"kserve>=0.21".*protobuf'):
        cli.main([str(tmp_path), "--server", "kserve"])
