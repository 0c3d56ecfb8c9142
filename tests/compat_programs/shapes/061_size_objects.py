import oneflow as flow
from shown import show

s = flow.ones(2, 3, 4).shape
show("s", s)
show("parts", (s[0], s[-1], len(s), s.numel(), s[1:]))
show("unpack", sum(s))
b, *rest = s
show("rest", rest)
show("equal", (s == (2, 3, 4), s == flow.Size([2, 3, 4]), tuple(s)))
show("index", (s.index(3), s.count(2)))
