import oneflow as flow
from shown import fixed, show

x, w = fixed(2, 3, 4), fixed(4, 5, seed=1)
show("linear", flow.einsum("btd,dh->bth", x, w))
show("scores", flow.einsum("bqd,bkd->bqk", x, x))
show("trace", flow.einsum("ii->i", fixed(3, 3)))
show("outer", flow.einsum("i,j->ij", fixed(2), fixed(3)))
show("sum", flow.einsum("ijk->j", x))
show("bilinear", flow.einsum("bn,anm,bm->ba", fixed(2, 3), fixed(4, 3, 2), fixed(2, 2)))
