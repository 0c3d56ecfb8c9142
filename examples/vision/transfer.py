"""A notebook in text: what a network knows of some digits helps with others."""

# %% [markdown]
# # Transfer: what a network knows of some digits helps with others
#
# A ViT learns to tell the digits 0 to 4 apart. Then it gets a fresh classifier, and learns 5 to 9 from 15 images each;
# beside it a network that begins from nothing with the same images. Pictures show what both predict, what they mix up,
# and where they look.
#
# This file is a notebook in text: editors that know `# %%` show its cells, `jupytext --to ipynb` makes an `.ipynb`, and
# `python -m examples.vision.transfer` runs it from begin to end. The pictures go to `runs/transfer`.

# %%
import functools
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import sbpjax as flow
from examples import recipe
from examples.vision.digits import pixels_and_labels
from sbpjax import optim, vision
from sbpjax.train import Trainer
from sbpjax.train.data import ArrayImages

OUT = Path("runs/transfer")
STEPS, TUNING_STEPS, EACH = 600, 200, 15  # of the training, of the tuning; images of each new digit
BOUND, GAIN = 0.85, 0.05  # of the tuned network's accuracy on held-out images; beside that of one from nothing
OUT.mkdir(parents=True, exist_ok=True)
flow.manual_seed(0)

# %% [markdown]
# ## Data
# Every third image is held out. Of the digits 5 to 9 the first 15 others are for tuning, as if there were no more.

# %%
SIZE = 16
pixels, labels = pixels_and_labels(SIZE)
held_out = np.arange(len(labels)) % 3 == 2
old = (labels < 5) & ~held_out
few = np.concatenate([np.flatnonzero((labels == digit) & ~held_out)[:EACH] for digit in range(5, 10)])
unseen = (labels >= 5) & held_out


def images_of(chosen, begin, samples):
    """Return images for training: moved a little, in another order in each epoch, with labels from 0."""
    return ArrayImages(pixels[chosen], labels[chosen] - begin, samples=samples, augment=True, mirror=False, margin=1)


def tensor_of(chosen):
    """Return images as a model takes them, `(B, 1, 16, 16)`, as they are."""
    return flow.tensor((pixels[chosen][:, None].astype(np.float32) / 255 - 0.5) / 0.5)


# %% [markdown]
# ## A network for the digits 0 to 4
# A small ViT: patches of 4 × 4 points, so an image is 16 tokens and a class token.

# %%
SMALL = {
    "in_chans": 1,
    "image_size": SIZE,
    "patch_size": 4,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "initializer_range": 0.1,
}
NAME = "vit_tiny_patch16_224"


def fitted(model, data, steps, lr, batch=50):
    """Train a model and return it."""
    trainer = Trainer(
        model=model,
        optimizer=functools.partial(optim.AdamW, lr=lr, weight_decay=0.05),
        schedule=optim.lr_scheduler.warmup_cosine(steps // 10, steps, final=0.01),
        data=data,
        batch_size=batch,
        max_steps=steps,
        log_every=max(steps // 4, 1),
    )
    trainer.fit()
    return model


first = fitted(vision.create_model(NAME, num_classes=5, **SMALL), images_of(old, 0, STEPS * 50), STEPS, 3e-3)
flow.checkpoint.save_safetensors(first.state_dict(), OUT / "first.safetensors")

# %% [markdown]
# ## The same network for 5 to 9
# Weights are read by name, and the classifier begins anew. The layers below it learn too, at a lower rate than those of
# a network that begins from nothing.

# %%
tuned = vision.create_model(NAME, num_classes=5, checkpoint=OUT / "first.safetensors", **SMALL)
tuned.reset_classifier(5)
tuned = fitted(tuned, images_of(few, 5, TUNING_STEPS * 25), TUNING_STEPS, 1e-3, batch=25)
alone = vision.create_model(NAME, num_classes=5, **SMALL)
alone = fitted(alone, images_of(few, 5, TUNING_STEPS * 25), TUNING_STEPS, 3e-3, batch=25)

# %% [markdown]
# ## Predictions
# A trained model lies on the devices of its trainer; read its weights into a local one to call it with local tensors.


# %%
def local(model):
    """Return a copy of a trained model on one device, for evaluation."""
    copy = vision.create_model(NAME, num_classes=5, **SMALL)
    copy.load_state_dict({name: flow.tensor(value.numpy()) for name, value in model.state_dict().items()})
    return copy.eval()


@flow.no_grad()
def predicted(model):
    """Return the likeliest digit of each unseen image, and its share."""
    shares = flow.softmax(model(tensor_of(unseen)), dim=1).numpy()
    return shares.argmax(1) + 5, shares.max(1)


true = labels[unseen]
models = {"tuned": local(tuned), "from nothing": local(alone)}
answers = {name: predicted(model) for name, model in models.items()}
accuracy = {name: float((digit == true).mean()) for name, (digit, _) in answers.items()}
print({name: f"{share:.1%}" for name, share in accuracy.items()})

figure, axes = plt.subplots(2, 10, figsize=(11, 3), dpi=80)
for i, panel in enumerate(axes.flat):
    digit, share = (part[i] for part in answers["tuned"])
    panel.imshow(pixels[unseen][i], cmap="gray_r")
    panel.set_title(f"{digit} ({share:.0%})", color="black" if digit == true[i] else "red", fontsize=9)
    panel.axis("off")
figure.suptitle("predictions of the tuned network; red where it is wrong")
figure.tight_layout()
figure.savefig(OUT / "predictions.png")

# %% [markdown]
# ## What is mixed up
# A row for each true digit, a column for each answer.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), dpi=80)
for panel, (name, (digit, _)) in zip(axes, answers.items(), strict=True):
    counts = np.zeros((5, 5), int)
    np.add.at(counts, (true - 5, digit - 5), 1)
    panel.imshow(counts, cmap="Blues")
    for row, column in np.ndindex(5, 5):
        colour = "white" if counts[row, column] > counts.max() / 2 else "black"
        panel.text(column, row, counts[row, column], ha="center", va="center", color=colour)
    panel.set(title=f"{name}: {accuracy[name]:.1%}", xlabel="answer", ylabel="digit")
    panel.set_xticks(range(5), range(5, 10))
    panel.set_yticks(range(5), range(5, 10))
figure.tight_layout()
figure.savefig(OUT / "confusion.png")

# %% [markdown]
# ## Where it looks
# The class token reads the patches by attention. Its shares in the last block, the mean of all heads, say from where.
# A hook takes what goes into that block's attention; queries and keys of it give the shares.


# %%
@flow.no_grad()
def attention_of(model, images):
    """Return of each image the class token's shares of the patches in the last block, `(B, 4, 4)`."""
    layer, seen = model.blocks[-1].attention, []
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(images)
    hook.remove()
    (x,) = seen  # (B, T, D)
    q, k = (one(x).reshape(*x.shape[:2], layer.heads, -1).transpose(1, 2) for one in (layer.q, layer.k))
    shares = flow.softmax(q @ k.transpose(2, 3) / layer.head_dim**0.5, dim=-1)  # (B, heads, T, T)
    side = SIZE // SMALL["patch_size"]
    return shares.mean(1)[:, 0, 1:].reshape(-1, side, side).numpy()


first_of_each = np.array([np.flatnonzero(true == digit)[0] for digit in range(5, 10)])
figure, axes = plt.subplots(3, 5, figsize=(8, 5), dpi=80)
axes[0, 0].set_ylabel("image")
for i, place in enumerate(first_of_each):
    axes[0, i].imshow(pixels[unseen][place], cmap="gray_r")
for row, (name, model) in enumerate(models.items(), 1):
    maps = attention_of(model, tensor_of(unseen))[first_of_each]
    axes[row, 0].set_ylabel(name)
    for i, (place, shares) in enumerate(zip(first_of_each, maps, strict=True)):
        axes[row, i].imshow(pixels[unseen][place], cmap="gray_r")
        axes[row, i].imshow(shares, cmap="hot", alpha=0.6, extent=(-0.5, SIZE - 0.5, SIZE - 0.5, -0.5))
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
figure.suptitle("attention of the class token in the last block")
figure.tight_layout()
figure.savefig(OUT / "attention.png")
plt.close("all")

# %% [markdown]
# ## The score
# The run has to reach it.

# %%
recipe.check("tuned, unseen images", accuracy["tuned"], BOUND)
recipe.check("gain over a network from nothing", accuracy["tuned"] - accuracy["from nothing"], GAIN)
