"""Programs of libraries for sound, optimizers, Bayesian optimization, self-supervised learning and tables."""

import torch
from torch import nn

from tests.compat.libraries.kit import digest, fill, integers, tensor, train


def audio_models():
    """Features, filters and effects of torchaudio, and three training steps of Conformer and wav2vec 2.0."""
    import torchaudio
    from torchaudio import functional, models, transforms

    wave = tensor("wave", 2, 1600).tanh().requires_grad_()
    with torch.no_grad():  # PyTorch's own fallback for the compiled filter is not differentiable
        low = functional.lowpass_biquad(wave, 16000, 2000.0)
    mel = transforms.MelSpectrogram(16000, n_fft=256, hop_length=128, n_mels=16)(wave)
    made = [
        mel,
        transforms.AmplitudeToDB()(mel),
        transforms.MFCC(16000, n_mfcc=8, melkwargs={"n_fft": 256, "hop_length": 128, "n_mels": 16})(wave),
        transforms.Resample(16000, 8000)(wave),
        low,
        functional.spectral_centroid(wave, 16000, 0, torch.hann_window(256), 256, 128, 256),
        functional.pitch_shift(wave, 16000, 12, n_fft=256),
        functional.add_noise(wave, tensor("noise", 2, 1600), torch.tensor([10.0, 5.0])),
        torchaudio.compliance.kaldi.fbank(wave[:1] * 100, num_mel_bins=8, dither=0.0),
    ]
    sum(one.mean() for one in made).backward()
    found = [number for one in (*made, wave.grad) for number in digest(one)]
    conformer, lengths = fill(models.Conformer(16, 2, 32, 2, 3)), torch.tensor([12, 9])
    frames = tensor("frames", 2, 12, 16)
    found += train(conformer, lambda i: (conformer(frames, lengths)[0] ** 2).mean())
    speech = fill(
        models.wav2vec2_model(
            "layer_norm", [(8, 10, 5), (8, 3, 2)], True, 16, 0.0, 4, 2, 2, 2, 0.0, 32, 0.0, 0.0, False, 0.0, 5
        )
    )
    return found + train(speech, lambda i: (speech(wave.detach())[0] ** 2).mean())


def further_optimizers():
    """Eleven optimizers of torch-optimizer, four steps each."""
    import torch_optimizer

    found = []
    for name in "AdaBound AdaMod AdamP Apollo DiffGrad Lamb NovoGrad QHAdam RAdam Yogi SGDP".split():
        net = fill(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
        x, y = tensor("x", 10, 6), integers("y", 3, 10)
        optimizer = getattr(torch_optimizer, name)(net.parameters(), lr=0.01)
        found += train(net, lambda i: nn.functional.cross_entropy(net(x), y), steps=4, optimizer=optimizer)  # noqa: B023
    return found


def bayesian_optimization():
    """A Gaussian process of botorch, its fit, posterior, and the maximum of expected improvement."""
    from botorch.acquisition import LogExpectedImprovement, qExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.linspace(0, 1, 8, dtype=torch.double)[:, None]
    y = torch.sin(6 * x) + 0.1 * torch.cos(20 * x)
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    at = torch.linspace(0, 1, 5, dtype=torch.double)[:, None, None].requires_grad_()
    gain = LogExpectedImprovement(model, best_f=y.max())(at)
    gain.sum().backward()
    sampler = SobolQMCNormalSampler(torch.Size([512]), seed=1)  # its scrambling differs: one mean of many samples
    several = qExpectedImprovement(model, y.max() - 1, sampler=sampler)(at.detach().reshape(1, 5, 1))
    posterior = model.posterior(at.detach()[:, 0])
    return [
        *digest(posterior.mean),
        *digest(posterior.variance),
        *digest(gain),
        *digest(at.grad),
        *several.mul(5).round().div(5).tolist(),
        *digest(torch.quasirandom.SobolEngine(3).draw(8)),
    ]


def self_supervised():
    """Eight losses of lightly with gradients, three steps of SimSiam's heads, and a momentum update."""
    from lightly import loss as losses
    from lightly.models.modules.heads import SimSiamPredictionHead, SimSiamProjectionHead
    from lightly.models.utils import update_momentum

    a, b = (tensor(name, 8, 16).requires_grad_() for name in "ab")
    made = [
        losses.NTXentLoss()(a, b),
        losses.NegativeCosineSimilarity()(a, b),
        losses.BarlowTwinsLoss()(a, b),
        losses.VICRegLoss()(a, b),
        losses.DCLLoss()(a, b),
        losses.DCLWLoss()(a, b),
        losses.SwaVLoss()([a], [b]),
        losses.TiCoLoss()(a, b),
    ]
    sum(made).backward()
    head = fill(nn.Sequential(SimSiamProjectionHead(16, 16, 8), SimSiamPredictionHead(8, 4, 8)))
    teacher = fill(nn.Sequential(SimSiamProjectionHead(16, 16, 8), SimSiamPredictionHead(8, 4, 8)))
    found = train(head, lambda i: (head(a.detach()) - b[:, :8].detach()).square().mean())
    update_momentum(head, teacher, 0.9)
    return [*(one.item() for one in made), *digest(a.grad), *digest(b.grad), *found, *digest(teacher[0](a))]


def tabular_network():
    """TabNet of pytorch-tabnet: three steps, masks, sparsemax and entmax."""
    from pytorch_tabnet.sparsemax import Entmax15, Sparsemax
    from pytorch_tabnet.tab_network import TabNet

    options = {"cat_idxs": [1], "cat_dims": [5], "cat_emb_dim": [2], "group_attention_matrix": torch.eye(8)}
    net = fill(TabNet(8, 3, 4, 4, 2, **options))
    x = torch.cat([tensor("x", 12, 1), integers("c", 5, 12, 1).float(), tensor("z", 12, 6)], 1)
    y = integers("y", 3, 12)

    def loss(step):
        output, sparsity = net(x)
        return nn.functional.cross_entropy(output, y) - 1e-3 * sparsity

    found = train(net, loss, lr=1e-2)
    scores = tensor("s", 4, 6).requires_grad_()
    made = [Sparsemax(-1)(scores), Entmax15(-1)(scores)]
    (made[0] * made[1]).sum().backward()
    explained, masks = net.eval().forward_masks(x)
    return [*found, *(n for one in (*made, scores.grad, explained, masks[0]) for n in digest(one))]
