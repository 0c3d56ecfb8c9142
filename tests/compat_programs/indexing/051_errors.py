import oneflow as flow
from shown import fixed, show

x = fixed(2, 3)
for name, action in {
    "too big": lambda: x[5],
    "too many": lambda: x[0, 0, 0],
    "dim": lambda: x.sum(dim=4),
    "gather dim": lambda: flow.gather(x, 3, flow.tensor([[0]])),
}.items():
    try:
        action()
        show(name, "no error")
    except (IndexError, RuntimeError) as error:
        show(name, isinstance(error, (IndexError, RuntimeError)))
