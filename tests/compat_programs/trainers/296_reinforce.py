import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
fill(policy)
optimizer = flow.optim.Adam(policy.parameters(), lr=0.05)
for episode in range(3):
    states = fixed(6, 3, seed=episode)
    logprobs = F.log_softmax(policy(states), dim=1)
    actions = flow.tensor([0, 1, 1, 0, 1, 0])
    rewards = fixed(6, seed=episode + 20)
    returns, running = [], 0.0
    for r in reversed(rewards.tolist()):
        running = r + 0.9 * running
        returns.insert(0, running)
    returns = flow.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    chosen = logprobs.gather(1, actions.unsqueeze(1)).squeeze(1)
    entropy = -(logprobs.exp() * logprobs).sum(dim=1).mean()
    loss = -(chosen * returns).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"episode {episode}", (loss, entropy))
