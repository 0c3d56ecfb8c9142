import oneflow as flow
from shown import fixed, show

x, y, z = fixed(2, 3), fixed(2, 3, seed=1), fixed(2, 3, seed=2)
show("addcmul", flow.addcmul(x, y, z, value=0.5))
show("addcdiv", flow.addcdiv(x, y, z.abs() + 1, value=0.1))
show("addmm", flow.addmm(fixed(2, 2, seed=3), x, y.t(), beta=0.5, alpha=2.0))
show("logaddexp", flow.logaddexp(x, y))
show("erf", flow.erf(x))
show("erfc", flow.erfc(x))
show("lgamma", flow.lgamma(x.abs() + 1))
show("erfinv", flow.erfinv(x.clamp(-0.9, 0.9)))
