import oneflow as flow
from shown import fixed, show

length, width = 4, 6
inverse = 1.0 / (10000 ** (flow.arange(0, width, 2).to(flow.float32) / width))
angles = flow.einsum("i,j->ij", flow.arange(length).to(flow.float32), inverse)
angles = flow.cat([angles, angles], dim=-1)
x = fixed(2, length, width)
half = flow.cat([-x[..., width // 2 :], x[..., : width // 2]], dim=-1)
rotated = x * angles.cos() + half * angles.sin()
show("rotated", rotated)
show("length kept", flow.allclose(rotated.norm(dim=-1), x.norm(dim=-1), atol=1e-4))
