import oneflow as flow
from oneflow import nn
from shown import fill, show

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(9, 4), nn.Linear(8, 4), nn.Linear(4, 9)

    def forward(self, token, state):
        state = flow.tanh(self.rnn(flow.cat([self.embed(token), state], dim=-1)))
        return self.out(state), state

decoder = Decoder()
fill(decoder, scale=0.6)
decoder.eval()

class Step(nn.Graph):
    def __init__(self):
        super().__init__()
        self.decoder = decoder

    def build(self, token, state):
        logits, state = self.decoder(token, state)
        return flow.argmax(logits, dim=-1), state

step = Step()
token, state = flow.tensor([1, 2]), flow.zeros(2, 4)
for i in range(4):
    token, state = step(token, state)
    show(f"token {i}", token)
show("state", state)
