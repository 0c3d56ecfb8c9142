"""Programs of further libraries: image operators, medical images, metric learning, Gaussian processes, estimators."""

import torch
from torch import nn

from tests.compat.libraries.kit import digest, fill, integers, tensor, train


def kornia_operators():
    """Filters, colors, warps and losses of kornia, with their gradients."""
    import kornia

    x = tensor("x", 2, 3, 16, 20).sigmoid().requires_grad_()
    homography = torch.eye(3)[None].repeat(2, 1, 1) + 0.01 * tensor("h", 2, 3, 3)
    made = [
        kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
        kornia.filters.sobel(x),
        kornia.filters.median_blur(x, (3, 3)),
        kornia.color.rgb_to_hsv(x),
        kornia.color.rgb_to_lab(x),
        kornia.geometry.transform.rotate(x, torch.tensor([10.0, -20.0])),
        kornia.geometry.transform.warp_perspective(x, homography, (16, 20)),
        kornia.morphology.dilation(x, torch.ones(3, 3)),
        kornia.losses.ssim_loss(x, x.flip(-1), 5),
        kornia.filters.canny(x)[0],
    ]
    sum(one.mean() for one in made[:9]).backward()
    return [number for one in (*made, x.grad) for number in digest(one)]


def monai_unet():
    """A U-Net with Dice and cross entropy, three steps; inference by sliding windows, and a metric."""
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import UNet

    net = fill(UNet(2, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1))
    x, y = tensor("x", 2, 1, 32, 32), integers("y", 2, 2, 1, 32, 32)
    criterion = DiceCELoss(to_onehot_y=True, softmax=True)
    losses = train(net, lambda i: criterion(net(x), y))
    with torch.no_grad():
        whole = sliding_window_inference(tensor("large", 1, 1, 48, 40), (32, 32), 2, net.eval(), overlap=0.25)
        metric = DiceMetric()
        metric((net(x).argmax(1, keepdim=True) == 1).float(), y.float())
    return [*losses, *digest(whole), metric.aggregate().item()]


def metric_learning():
    """Ten losses of pytorch-metric-learning with gradients, and two miners."""
    from pytorch_metric_learning import losses, miners

    embeddings, labels = tensor("e", 12, 8).requires_grad_(), torch.arange(12) % 4
    names = "TripletMargin Contrastive NTXent MultiSimilarity Circle SupCon LiftedStructure NCA Angular FastAP"
    found = []
    for name in names.split():
        loss = getattr(losses, f"{name}Loss")()(embeddings, labels)
        loss.backward()
        found.append(loss.item())
    pairs = miners.MultiSimilarityMiner()(embeddings, labels)
    mined = miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard")(embeddings, labels)
    found.append(losses.TripletMarginLoss()(embeddings, labels, mined).item())
    return [*found, *(float(len(one)) for one in pairs), *digest(embeddings.grad)]


def gaussian_process():
    """An exact Gaussian process of gpytorch: five steps on its hyperparameters, predictions with variances."""
    import gpytorch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 12)
    y = torch.sin(x * 6)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Process(x, y, likelihood)
    criterion = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = train(model, lambda i: -criterion(model(x), y), steps=5, optimizer=optimizer)
    model.eval(), likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.linspace(0, 1, 5)))
    return [*losses, *digest(found.mean), *digest(found.variance)]


def scikit_learn_search():
    """skorch: a net as an estimator, with a schedule of rates, in a search over sizes."""
    from sklearn.model_selection import GridSearchCV
    from skorch import NeuralNetClassifier
    from skorch.callbacks import LRScheduler

    class Net(nn.Module):
        def __init__(self, size=8):
            super().__init__()
            self.net = fill(nn.Sequential(nn.Linear(6, size), nn.ReLU(), nn.Linear(size, 3), nn.Softmax(-1)))

        def forward(self, X):
            return self.net(X)

    x, y = tensor("X", 60, 6).numpy(), integers("y", 3, 60).numpy()
    options = {"lr": 0.1, "iterator_train__shuffle": False, "verbose": 0}
    schedule = ("rates", LRScheduler(policy="StepLR", step_size=1))
    net = NeuralNetClassifier(Net, max_epochs=3, callbacks=[schedule], **options).fit(x, y)
    found = [row[name] for row in net.history for name in ("train_loss", "valid_loss", "valid_acc")]
    plain = NeuralNetClassifier(Net, max_epochs=2, train_split=None, **options)
    search = GridSearchCV(plain, {"module__size": [4, 8]}, cv=2, scoring="neg_log_loss").fit(x, y)
    scores = search.cv_results_["mean_test_score"]
    return [*map(float, found), *map(float, net.predict_proba(x[:3]).ravel()), *map(float, scores)]
