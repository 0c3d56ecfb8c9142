"""Engine options of an inference graph: engine, precision, verification, threads."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("openvino", "onnxruntime", "tensorrt", "iree", "xla")
PRECISIONS = {
    "openvino": ("float32", "bfloat16", "float16", "int8"),
    "onnxruntime": ("float32",),
    "tensorrt": ("float32", "float16"),
    "iree": ("float32",),
    "xla": ("float32",),
}


@dataclass(frozen=True)
class Engine:
    """An engine under an inference graph; part of the key of a program.

    Attributes:
        name: one of `ENGINES`; ``"xla"`` is XLA with the weights as constants.
        precision: the type in which it may compute; tensors stay as they are. ``"bfloat16"`` is fast where the
            processor has units for it; ``"int8"`` keeps matrices of weights in 8 bits and computes in float32.
        verify: compare the first result with XLA's.
        threads: the number of threads; None for its own choice.
    """

    name: str
    precision: str = "float32"
    verify: bool = True
    threads: int | None = None

    def __str__(self) -> str:
        return f"{self.name}, {self.precision}{'' if self.verify else ', not verified'}"
