"""Export a training run's checkpoint for serving, to Triton or to the HTTP endpoint.

    python -m sbpjax.serving.from_run runs/resnet50 models/resnet50 --input images:3x224x224    # for Triton
    python -m sbpjax.serving.from_run runs/gpt2 my-gpt2 --language                              # for the HTTP endpoint

The run is a directory of ``python -m sbpjax.train``: the model is built from its config.yaml, and its weights are those
of the latest checkpoint, or of the best, on one device, whatever the layout in the run was.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import sbpjax as flow
from sbpjax import checkpoint, models, nn
from sbpjax.errors import SbpjaxError, ServingError
from sbpjax.graph import TensorSpec
from sbpjax.train import load_run
from sbpjax.utils.host import command_parser


class _Forward(nn.Graph):
    """Graph of a model's outputs for one batch."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model.eval()

    def build(self, **given: flow.Tensor) -> flow.Tensor:
        """Return the outputs of the model; the input has the name that clients will use."""
        return self.model(*given.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files to serve."""
    parser = command_parser("sbpjax.serving.from_run")
    parser.add_argument("run", help="directory of the run, with config.yaml and checkpoints")
    parser.add_argument("to", help="<repository>/<model>, or with --language a new directory")
    parser.add_argument(
        "--input", metavar="NAME:SIZExSIZE[:DTYPE]", help="an input of the model, without the batch dim"
    )
    parser.add_argument("--language", action="store_true", help="write a folder that sbpjax.serving.openai reads")
    parser.add_argument("--version", type=int, default=1, help="version of the model in the repository")
    parser.add_argument("--step", type=int, help="step of the checkpoint; by default the latest")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="PACKAGE", help="a package whose names its config.yaml may call"
    )
    parser.add_argument("--trust", action="store_true", help="let its config.yaml call any name, and so run any code")
    options = parser.parse_args(arguments)
    try:
        if options.language == (options.input is not None):
            seen, rule = "both or none of --input and --language", "a graph has an input; a language model's are tokens"
            raise ServingError(f"from_run {options.run!r}", seen, rule, "--input images:3x224x224")
        given = None if options.language else _input(options.input)
        model = load_run(options.run, options.step, allow=options.allow, trust=options.trust)
        with checkpoint.Manager(Path(options.run) / "checkpoints", keep_last=None) as manager:
            step = options.step or manager.steps()[-1]
        if given is None:
            models.save_pretrained(model, options.to)
            print(f"step {step} of {options.run} is in {options.to}: python -m sbpjax.serving.openai {options.to}")
            return
        name, shape, dtype = given
        graph = _Forward(model)
        folder = Path(options.to) / str(options.version) / "model"
        folder.parent.mkdir(parents=True, exist_ok=True)
        graph.export(folder, dynamic_batch=True, onnx=_has_onnx(), **{name: TensorSpec((1, *shape), dtype)})
        print(f"step {step} of {options.run} is in {folder}: python -m sbpjax.serving {Path(options.to).parent}")
    except SbpjaxError as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _input(text: str) -> tuple[str, list[int], flow.dtype]:
    name, *rest = text.split(":")
    try:
        sizes = [int(n) for n in rest[0].split("x")] if rest and rest[0] else []
        dtype = getattr(flow, str(np.dtype(rest[1] if len(rest) > 1 else "float32")))
        if not name.isidentifier() or len(rest) not in (1, 2) or not all(n > 0 for n in sizes):
            raise ValueError(text)
    except (ValueError, TypeError, AttributeError):
        rule = "an input has a name, sizes without the batch, and a dtype"
        raise ServingError(f"--input {text}", "something else", rule, "--input images:3x224x224:float32") from None
    return name, sizes, dtype


def _has_onnx() -> bool:
    return importlib.util.find_spec("onnx") is not None


if __name__ == "__main__":
    main()
