import oneflow as flow
import oneflow.nn as nn
from shown import show

x = flow.arange(8, dtype=flow.float32).reshape(1, 2, 2, 2)
show("zero", nn.ZeroPad2d((1, 0, 0, 1))(x))
show("constant", nn.ConstantPad2d(1, 3.5)(x).sum())
show("reflect", nn.ReflectionPad2d(1)(x))
show("replicate", nn.ReplicationPad2d((1, 1, 0, 0))(x))
show("nearest", nn.Upsample(scale_factor=2, mode="nearest")(x))
show("bilinear", nn.Upsample(size=(4, 4), mode="bilinear", align_corners=True)(x))
show("upsampling", nn.UpsamplingNearest2d(scale_factor=2)(x).shape)
