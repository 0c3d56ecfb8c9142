import oneflow as flow
from shown import fixed, show

batch, length, heads, width = 2, 5, 4, 3
x = fixed(batch, length, heads * width)
split = x.view(batch, length, heads, width).permute(0, 2, 1, 3)
show("split", split.shape)
joined = split.transpose(1, 2).contiguous().view(batch, length, heads * width)
show("round trip", flow.allclose(joined, x))
qkv = fixed(batch, length, 3 * heads * width).reshape(batch, length, 3, heads, width).permute(2, 0, 3, 1, 4)
q, k, v = qkv[0], qkv[1], qkv[2]
show("q", q.sum(dim=(0, 1)))
show("kv", (k.shape, v.mean()))
