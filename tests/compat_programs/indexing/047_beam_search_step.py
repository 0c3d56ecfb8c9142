import oneflow as flow
from shown import fixed, show

scores = fixed(2, 3, 7)
running = fixed(2, 3, seed=5)
total = running.unsqueeze(-1) + flow.log_softmax(scores, dim=-1)
best, flat = total.reshape(2, -1).topk(3, dim=-1)
beam = flat // 7
token = flat % 7
show("best", best)
show("beam", beam)
show("token", token)
history = flow.arange(12).reshape(2, 3, 2)
kept = flow.gather(history, 1, beam.unsqueeze(-1).expand(-1, -1, 2))
show("history", flow.cat([kept, token.unsqueeze(-1)], dim=-1))
