import oneflow as flow
from oneflow.nn import functional as F
from shown import show

x = flow.linspace(-2, 2, 6)
show("relu", F.relu(x))
show("leaky", F.leaky_relu(x, 0.1))
show("elu", F.elu(x, alpha=0.5))
show("gelu", F.gelu(x))
show("tanh approx", F.gelu(x, approximate="tanh"))
show("hardtanh", F.hardtanh(x, -1.0, 1.0))
show("softplus", F.softplus(x, beta=2.0))
show("glu", F.glu(x.reshape(1, 6), dim=1))
show("logsigmoid", F.logsigmoid(x))
show("prelu", F.prelu(x.reshape(1, 6), flow.tensor([0.25])))
show("threshold", F.threshold(x, threshold=0.5, value=0.2))
