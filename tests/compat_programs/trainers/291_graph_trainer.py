import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class Trainer:
    def __init__(self, model, optimizer, scheduler, loss):
        self.model = model

        class TrainGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model, self.loss = model, loss
                self.add_optimizer(optimizer, lr_sch=scheduler)

            def build(self, x, y):
                logits = self.model(x)
                value = self.loss(logits, y)
                value.backward()
                return value, logits

        class EvalGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model

            def build(self, x):
                return flow.softmax(self.model(x), dim=1)

        self.train_graph, self.eval_graph = TrainGraph(), EvalGraph()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for step in range(2):
                loss, _ = self.train_graph(fixed(6, 4, seed=step), flow.tensor([0, 1, 2, 0, 1, 2]))
            self.model.eval()
            show(f"epoch {epoch}", (loss, self.eval_graph(fixed(3, 4, seed=9))))

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 3))
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = flow.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3], gamma=0.1)
Trainer(model, optimizer, scheduler, nn.CrossEntropyLoss()).fit(3)
