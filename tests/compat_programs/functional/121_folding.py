import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fixed, show

x = fixed(1, 2, 4, 4)
columns = F.unfold(x, kernel_size=2, stride=2)
show("columns", columns)
back = F.fold(columns, output_size=(4, 4), kernel_size=2, stride=2)
show("back", flow.allclose(back, x))
show("layer", nn.Unfold(kernel_size=3, padding=1)(x).shape)
