"""From a run to a server: ResNet-50 and GPT-2 in three commands each; the lines of the image and of the manifest."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, serving
from sbpjax.serving import cli, from_run
from sbpjax.serving import openai as endpoint
from sbpjax.train import load_run
from sbpjax.train.cli import main as train
from tests.examples.test_gpt2 import SMALL, folder  # noqa: F401
from tests.serving.test_triton import BINARY, ask, free_port, needs_server

HERE = Path(__file__).resolve().parents[2] / "examples/serving"
PROBES = {"/v2/health/live", "/v2/health/ready"}


def commands():
    return [
        line
        for block in re.findall(r"```\n(.*?)```", (HERE / "README.md").read_text(), re.S)
        for line in block.splitlines()
    ]


@pytest.mark.slow
def test_a_small_resnet_is_served(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    monkeypatch.chdir(tmp_path)
    first, second, third = (shlex.split(line)[3:] for line in commands()[:3])
    train([*first, "steps=1", "trainer.model.name=resnet18", "trainer.batch_size=4"])
    from_run.main(second)
    assert "step 1 of runs/resnet50" in capsys.readouterr().out
    cli.main([*third, "--check"])
    assert re.search(r'name: "images" data_type: TYPE_FP32 dims: \[ 3, 32, 32 \]', capsys.readouterr().out)
    model = load_run("runs/resnet50")
    x = flow.randn(3, 3, 32, 32)
    found = flow.load_graph("models/resnet50/1/model")(images=x)
    np.testing.assert_allclose(found.numpy(), model(x).numpy(), rtol=1e-3, atol=1e-4)


@needs_server
@pytest.mark.slow
@pytest.mark.exhaustive  # a minute
def test_resnet50_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (shlex.split(line)[3:] for line in commands()[:2])
    train([*first, "steps=2"])
    from_run.main(second)
    ports = {f"{name}_port": free_port() for name in ("http", "grpc", "metrics")}
    model = load_run("runs/resnet50")
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
    with serving.Server(serving.Repository("models", engine="openvino"), binary=BINARY, **ports):
        given = {"name": "images", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}
        body = json.dumps({"inputs": [given]}).encode()
        status, answer = ask(f"http://127.0.0.1:{ports['http_port']}/v2/models/resnet50/infer", body)
    assert status == 200
    (out,) = json.loads(answer)["outputs"]
    np.testing.assert_allclose(
        np.array(out["data"]).reshape(out["shape"]), model(flow.tensor(x)).numpy(), rtol=1e-3, atol=1e-3
    )


@pytest.mark.slow
def test_gpt2_is_served_from_a_run_on_a_mesh(folder, tmp_path, monkeypatch):  # noqa: F811
    first, second, third = (shlex.split(line)[3:] for line in commands()[4:7])
    monkeypatch.chdir(tmp_path)
    axes = ["trainer.parallel.data=1", "trainer.parallel.pipeline=1", "trainer.hooks.checkpoints.every=4"]
    train([*first, *SMALL, *axes, f"folder={folder / 'data'}"])
    from_run.main(second)
    model = load_run("runs/gpt2")
    wanted = models.Generator(model)([[5, 6]], 4)[0]
    found = []

    def run(server, sockets):
        app = server.config.app
        stream = app._engine.submit([5, 6], 4)
        found.append((list(stream), sockets[0].getsockname()[0], app._encode("def ") != []))

    monkeypatch.setattr("uvicorn.Server.run", run)
    third[third.index("--tokenizer") + 1] = str(folder / "data/tokenizer.json")
    endpoint.main([*third, "--rows", "1", "--blocks", "9", "--port", "0"])
    assert found == [(wanted, "127.0.0.1", True)]


def test_the_commands_are_those_of_the_package():
    modules = {line.split()[2] for line in commands() if line.startswith("python -m")}
    assert modules == {"sbpjax.train", "sbpjax.serving", "sbpjax.serving.from_run", "sbpjax.serving.openai"}


def test_the_image():
    lines = (HERE / "Dockerfile").read_text().splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line[:1].isupper()]
    assert [
        step for step, _ in steps
    ] == "FROM RUN WORKDIR COPY COPY RUN USER HEALTHCHECK EXPOSE ENTRYPOINT CMD".split()
    for step, rest in steps:
        if step == "COPY":
            assert all((HERE.parents[1] / name).exists() for name in rest.split()[:-1]), rest
    commands_text = dict(steps)
    assert json.loads(commands_text["ENTRYPOINT"]) == ["python", "-m", "sbpjax.serving"]
    assert commands_text["USER"] == "serving" and "/v2/health/ready" in commands_text["HEALTHCHECK"]
    _checked(json.loads(commands_text["CMD"]))


def test_the_manifest():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    deployment, service, inference = yaml.safe_load_all((HERE / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8000, "grpc": 8001, "metrics": 8002}
    (other,) = inference["spec"]["predictor"]["containers"]
    for one in (container, other):
        requested = {one[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}
        assert requested == PROBES
        assert all(mount["readOnly"] for mount in one["volumeMounts"] if mount["name"] == "models")
    assert container["startupProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(ports)
    assert pod["securityContext"]["runAsNonRoot"] and pod["terminationGracePeriodSeconds"] > 40
    _checked(other["args"])


def _checked(arguments):
    """Look whether the command takes these arguments: it ends at the folder that is not there, not at an option."""
    with pytest.raises(SystemExit, match=r"(?s)ServingError: serving ./models.*no such folder"):
        cli.main([*arguments, "--check"]) if not Path("/models").exists() else pytest.skip("there is a /models")
