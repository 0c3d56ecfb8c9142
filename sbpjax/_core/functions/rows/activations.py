"""Op table: activations, also in `nn.functional` and as stateless layers. Any sbp; no partial sums.

A layer has the form's attributes as options, and `inplace` where the function in `nn.functional` takes it.
"""

from __future__ import annotations

from ..table.op_modules import activation, elementwise
from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, NN, NN_INPLACE, OUTPUT, custom, op

ACTIVATION = "sbpjax._core.functions.layers.activation"
READ = FN | METHOD

op("relu(input)", activation.relu, READ | INPLACE | INPLACE_FN | NN | NN_INPLACE, inplace=FN | NN,
   saves=OUTPUT,
   layer="ReLU")  # fmt: skip
op("nn.functional.relu6(input)", activation.relu6, inplace=NN, layer="ReLU6")
op(
    "nn.functional.hardtanh(input, min_val=-1.0, max_val=1.0)",
    activation.hardtanh,
    FN | NN_INPLACE,
    inplace=NN,
)
op("threshold(input, threshold, value)", activation.threshold, FN | INPLACE_FN | NN | NN_INPLACE, inplace=NN,
   layer="Threshold")  # fmt: skip
op("nn.functional.leaky_relu(input, negative_slope=0.01)", activation.leaky_relu, FN | NN_INPLACE, inplace=NN,
   names={"alpha": "negative_slope"}, layer="LeakyReLU")  # fmt: skip
op("prelu(input, weight)", activation.prelu, READ | NN, names={"alpha": "weight"}, amp="lower")
op("nn.functional.elu(input, alpha=1.0)", activation.elu, FN | NN_INPLACE, inplace=NN, layer="ELU")
op("selu(input)", activation.selu, READ | INPLACE_FN | NN | NN_INPLACE, inplace=NN, layer="SELU")
op("celu(input, alpha=1.0)", activation.celu, READ | INPLACE_FN | NN | NN_INPLACE, inplace=NN, layer="CELU")
op("nn.functional.sigmoid(input)", activation.sigmoid, layer="Sigmoid")
op("nn.functional.tanh(input)", elementwise.tanh, layer="Tanh")
op("nn.functional.logsigmoid(input)", activation.logsigmoid, layer="LogSigmoid", out=NN)
op("softplus(input, beta=1.0, threshold=20.0)", activation.softplus, READ | NN, layer="Softplus",
   amp="accelerator:float32", out=FN | NN)  # fmt: skip
op("softsign(input)", activation.softsign, READ | NN, inplace=NN, layer="Softsign")
op("silu(input)", activation.silu, READ | NN, inplace=NN, layer="SiLU")
op("mish(input)", activation.mish, READ | NN, inplace=NN, layer="Mish")
op("gelu(input, approximate='none')", activation.gelu, READ | NN, layer="GELU", out=FN | NN)
op("quick_gelu(input)", activation.quick_gelu, FN | NN, layer="QuickGELU")
op("square_relu(input)", activation.square_relu, FN | NN, layer="SquareReLU")
op("nn.functional.hardsigmoid(input)", activation.hardsigmoid, inplace=NN, layer="Hardsigmoid")
op("nn.functional.hardswish(input)", activation.hardswish, inplace=NN, layer="Hardswish")
op("nn.functional.hardshrink(input, lambd=0.5)", activation.hardshrink, READ, also=".hardshrink", inplace=NN,
   out=FN | NN)  # fmt: skip
op("softshrink(input, lambd=0.5)", activation.softshrink, FN | NN, check="check_lambda", inplace=FN | NN,
   out=FN | NN, names={"alpha": "lambd"})  # fmt: skip
op("nn.functional.tanhshrink(input)", activation.tanhshrink, layer="Tanhshrink")
op("nn.functional.glu(input, dim=-1)", activation.glu, layer="GLU")
op(
    "softmax(input, dim=None, dtype=None)",
    activation.softmax,
    READ | INPLACE,
    saves=OUTPUT,
    amp="accelerator:float32",
)
op(
    "log_softmax(input, dim=None, dtype=None)",
    activation.log_softmax,
    READ,
    saves=OUTPUT,
    amp="accelerator:float32",
)
op("special.softmax(input, dim, *, dtype=None)", activation.softmax, out=False)
op("special.log_softmax(input, dim, *, dtype=None)", activation.log_softmax, out=False)
op("nn.functional.softmax(input, dim=None, _stacklevel=3, dtype=None)", activation.softmax,
   ignores="_stacklevel",
   layer="Softmax(dim=None)")  # fmt: skip
op("nn.functional.log_softmax(input, dim=None, _stacklevel=3, dtype=None)", activation.log_softmax,
   ignores="_stacklevel", layer="LogSoftmax(dim=None)")  # fmt: skip
op("nn.functional.softmin(input, dim=None, _stacklevel=3, dtype=None)", activation.softmin,
   ignores="_stacklevel",
   amp="accelerator:float32", layer="Softmin(dim=None)")  # fmt: skip
custom("nn.functional.rrelu", ACTIVATION, also=".rrelu")
custom("nn.functional.rrelu_", ACTIVATION, also=".rrelu_")
custom("nn.functional.gumbel_softmax", ACTIVATION, names={"x": "logits"})
