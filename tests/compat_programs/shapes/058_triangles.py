import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
show("tril", x.tril())
show("triu", x.triu(1))
show("tril -1", flow.tril(x, diagonal=-1))
show("diagonal", flow.diagonal(x))
show("offset", flow.diagonal(x, offset=1))
show("batch", flow.diagonal(fixed(2, 3, 3), dim1=1, dim2=2))
