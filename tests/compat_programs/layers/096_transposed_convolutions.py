import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

up = nn.ConvTranspose2d(3, 2, kernel_size=2, stride=2)
fill(up)
x = fixed(1, 3, 4, 4)
show("up", up(x))
wide = nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1)
fill(wide, seed=1)
show("wide", wide(x).sum(dim=(2, 3)))
line = nn.ConvTranspose1d(3, 2, 4, 2, 1)
fill(line, seed=2)
show("line", line(fixed(2, 3, 5)))
