import oneflow as flow
from shown import show

g = flow.Generator()
g.manual_seed(5)
x = flow.rand(4, generator=g)
g.manual_seed(5)
show("same", flow.equal(x, flow.rand(4, generator=g)))
state = g.get_state()
y = flow.rand(4, generator=g)
g.set_state(state)
show("restored", flow.equal(y, flow.rand(4, generator=g)))
show("seed", g.initial_seed())
state = flow.get_rng_state()
z = flow.rand(2)
flow.set_rng_state(state)
show("default", flow.equal(z, flow.rand(2)))
