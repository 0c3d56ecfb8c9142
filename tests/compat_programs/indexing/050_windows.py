import oneflow as flow
from shown import show

x = flow.arange(8, dtype=flow.float32)
show("unfold", x.unfold(0, 4, 2))
show("strided", flow.as_strided(x, (3, 3), (2, 1), 1))
image = flow.arange(16, dtype=flow.float32).reshape(1, 1, 4, 4)
patches = image.reshape(1, 1, 2, 2, 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(1, 4, 4)
show("patches", patches)
show("roll", flow.roll(image, shifts=(-1, -1), dims=(2, 3)))
