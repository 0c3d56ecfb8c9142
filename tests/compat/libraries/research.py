"""Programs of libraries for training loops, graphs, attribution and differential equations."""

import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from tests.compat.libraries.kit import digest, fill, integers, tensor


def _loader(batch_size=16):
    x = tensor("rows", 64, 4)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    return torch.utils.data.DataLoader(data, batch_size=batch_size)


def _mlp(outputs=1):
    return fill(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, outputs)))


def lightning_trainer():
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.losses = _mlp(), []

        def training_step(self, batch, index):
            loss = F.mse_loss(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            self.log("validation", F.mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)]

    model, folder = Model(), tempfile.mkdtemp()
    options = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "default_root_dir": folder}
    trainer = lightning.Trainer(max_epochs=3, gradient_clip_val=1.0, enable_model_summary=False, **options)
    trainer.fit(model, _loader(), _loader())
    trainer.save_checkpoint(f"{folder}/last.ckpt")
    again = Model.load_from_checkpoint(f"{folder}/last.ckpt", weights_only=False)
    same = torch.equal(again.net[0].weight, model.net[0].weight)
    return [*model.losses, *map(float, trainer.callback_metrics.values()), float(same)]


def lightning_fabric():
    import lightning

    fabric, model = lightning.Fabric(accelerator="cpu", devices=1), _mlp()
    fabric.launch()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = []
    for x, y in fabric.setup_dataloaders(_loader()):
        loss = F.mse_loss(model(x), y)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _graph_network(kind):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = kind(8, 16), kind(16, 3)

        def forward(self, data):
            return self.second(torch.relu(self.first(data.x, data.edge_index)), data.edge_index)

    return fill(Net())


def graph_networks():
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

    data = Data(x=tensor("nodes", 20, 8), edge_index=integers("edges", 20, 2, 60), y=integers("labels", 3, 20))
    losses = []
    for kind in (GCNConv, GATConv, SAGEConv):
        model = _graph_network(kind)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(4):
            loss = F.cross_entropy(model(data), data.y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    batch = next(iter(DataLoader([data, data], batch_size=2)))
    return [*losses, *digest(global_mean_pool(batch.x, batch.batch))]


def attributions():
    from captum.attr import DeepLift, IntegratedGradients, LayerConductance, Occlusion, Saliency

    model = fill(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    x = tensor("inputs", 2, 4)
    found, delta = IntegratedGradients(model).attribute(x, target=1, return_convergence_delta=True)
    return [
        *digest(found), *digest(delta), *digest(Saliency(model).attribute(x.clone().requires_grad_(), target=0)),
        *digest(LayerConductance(model, model[0]).attribute(x, target=1)),
        *digest(DeepLift(model).attribute(x, target=1)), *digest(Occlusion(model).attribute(x, (1,), target=1)),
    ]  # fmt: skip


def ignite_engine():
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    model, losses = _mlp(3), []
    data = torch.utils.data.TensorDataset(tensor("rows", 64, 4), integers("classes", 3, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), F.cross_entropy)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output))
    trainer.run(loader, max_epochs=2)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(F.cross_entropy)})
    evaluator.run(loader)
    return [*losses, *map(float, evaluator.state.metrics.values())]


def differential_equations():
    from torchdiffeq import odeint, odeint_adjoint

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = fill(nn.Linear(2, 2))

        def forward(self, t, y):
            return torch.tanh(self.net(y))

    field, start, times = Field(), tensor("start", 2, 2), torch.linspace(0, 2, 5)
    found = [
        number for method in ("euler", "rk4", "dopri5") for number in digest(odeint(field, start, times, method=method))
    ]
    odeint_adjoint(field, start, times, rtol=1e-7, atol=1e-7).sum().backward()
    return [*found, *digest(field.net.weight.grad)]
