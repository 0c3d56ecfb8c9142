import oneflow as flow
from shown import show

policy = flow.distributions.Categorical(probs=flow.tensor([0.1, 0.2, 0.7]))
flow.manual_seed(0)
draws = flow.stack([policy.sample() for _ in range(20)])
show("draws", (draws.shape, draws.min().item() >= 0, draws.max().item() <= 2))
logits = flow.distributions.Categorical(logits=flow.zeros(2, 4))
show("probs", logits.probs)
show("sample", logits.sample().shape)
