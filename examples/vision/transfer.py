"""Transfer learning as a notebook in text: a network trained on digits learns to count their holes."""

# %% [markdown]
# # Transfer: a network that knows digits learns to count holes
#
# A ViT learns to classify the ten digits. Then it gets a fresh classifier, and learns how many holes a digit has, from
# three images of each: none in 1 to 5 and 7, one in 0, 6 and 9, two in 8. For comparison a network learns that from
# scratch, with the same images. Pictures show predictions, confusions and attention.
#
# This file is a notebook in text: editors that know `# %%` show its cells, `jupytext --to ipynb` makes an `.ipynb`, and
# `python -m examples.vision.transfer` runs it from beginning to end. The pictures go to `runs/transfer`.

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
STEPS, TUNING_STEPS, EACH = 600, 120, 3  # of the training, of the tuning; images of each digit for the tuning
BOUND, GAIN = 0.88, 0.05  # of the tuned network's accuracy on held-out images; beside that of one from nothing
OUT.mkdir(parents=True, exist_ok=True)
flow.manual_seed(0)

# %% [markdown]
# ## Data
# Every third image is held out. Of the others, three of each digit are for tuning, as if nobody had counted more holes.

# %%
SIZE = 16
HOLES = np.array([1, 0, 0, 0, 0, 0, 1, 0, 2, 1])  # of the digits
pixels, labels = pixels_and_labels(SIZE)
holes = HOLES[labels]
held_out = np.arange(len(labels)) % 3 == 2
few = np.concatenate([np.flatnonzero((labels == digit) & ~held_out)[:EACH] for digit in range(10)])


def images_of(chosen, classes, samples):
    """Return images for training: moved a little, in another order in each epoch."""
    return ArrayImages(pixels[chosen], classes[chosen], samples=samples, augment=True, mirror=False, margin=1)


def tensor_of(chosen):
    """Return images as a model takes them, `(B, 1, 16, 16)`, as they are."""
    return flow.tensor((pixels[chosen][:, None].astype(np.float32) / 255 - 0.5) / 0.5)


# %% [markdown]
# ## A network that knows digits
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


first = vision.create_model(NAME, num_classes=10, **SMALL)
first = fitted(first, images_of(~held_out, labels, STEPS * 50), STEPS, 3e-3)
flow.checkpoint.save_safetensors(first.state_dict(), OUT / "first.safetensors")

# %% [markdown]
# ## The same network for holes
# Weights are read by name, and the classifier is fresh. The layers below it learn too, at a lower rate than those of a
# network trained from scratch.

# %%
tuned = vision.create_model(NAME, num_classes=10, checkpoint=OUT / "first.safetensors", **SMALL)
tuned.reset_classifier(3)
tuned = fitted(tuned, images_of(few, holes, TUNING_STEPS * 30), TUNING_STEPS, 1e-3, batch=30)
alone = vision.create_model(NAME, num_classes=3, **SMALL)
alone = fitted(alone, images_of(few, holes, TUNING_STEPS * 30), TUNING_STEPS, 3e-3, batch=30)

# %% [markdown]
# ## Predictions
# A trained model is on the devices of its trainer; read its weights into a local one to call it with local tensors.


# %%
def local(model):
    """Return a copy of a trained model on one device, for evaluation."""
    copy = vision.create_model(NAME, num_classes=3, **SMALL)
    copy.load_state_dict({name: flow.tensor(value.numpy()) for name, value in model.state_dict().items()})
    return copy.eval()


@flow.no_grad()
def predicted(model):
    """Return the likeliest number of holes of each held-out image, and its share."""
    shares = flow.softmax(model(tensor_of(held_out)), dim=1).numpy()
    return shares.argmax(1), shares.max(1)


true = holes[held_out]
models = {"tuned": local(tuned), "from nothing": local(alone)}
answers = {name: predicted(model) for name, model in models.items()}
accuracy = {name: float((found == true).mean()) for name, (found, _) in answers.items()}
print({name: f"{share:.1%}" for name, share in accuracy.items()})

figure, axes = plt.subplots(2, 10, figsize=(11, 3), dpi=80)
for i, panel in enumerate(axes.flat):
    found, share = (part[i] for part in answers["tuned"])
    panel.imshow(pixels[held_out][i], cmap="gray_r")
    panel.set_title(f"{found} ({share:.0%})", color="black" if found == true[i] else "red", fontsize=9)
    panel.axis("off")
figure.suptitle("holes that the tuned network counts; red where it is wrong")
figure.tight_layout()
figure.savefig(OUT / "predictions.png")

# %% [markdown]
# ## Confusion matrix
# A row for each true number, a column for each answer.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), dpi=80)
for panel, (name, (found, _)) in zip(axes, answers.items(), strict=True):
    counts = np.zeros((3, 3), int)
    np.add.at(counts, (true, found), 1)
    panel.imshow(counts, cmap="Blues")
    for row, column in np.ndindex(3, 3):
        colour = "white" if counts[row, column] > counts.max() / 2 else "black"
        panel.text(column, row, counts[row, column], ha="center", va="center", color=colour)
    panel.set(title=f"{name}: {accuracy[name]:.1%}", xlabel="answer", ylabel="holes")
    panel.set_xticks(range(3))
    panel.set_yticks(range(3))
figure.tight_layout()
figure.savefig(OUT / "confusion.png")

# %% [markdown]
# ## Attention
# The class token reads the patches by attention. Its weights in the last block, averaged over heads, show the source.
# A hook takes the input of that block's attention; its queries and keys give the weights.


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


shown = np.array([np.flatnonzero(labels[held_out] == digit)[0] for digit in (0, 4, 6, 8, 9)])
figure, axes = plt.subplots(3, 5, figsize=(8, 5), dpi=80)
axes[0, 0].set_ylabel("image")
for i, place in enumerate(shown):
    axes[0, i].imshow(pixels[held_out][place], cmap="gray_r")
for row, (name, model) in enumerate(models.items(), 1):
    maps = attention_of(model, tensor_of(held_out))[shown]
    axes[row, 0].set_ylabel(name)
    for i, (place, shares) in enumerate(zip(shown, maps, strict=True)):
        axes[row, i].imshow(pixels[held_out][place], cmap="gray_r")
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
recipe.check("tuned, held-out images", accuracy["tuned"], BOUND)
recipe.check("gain over a network from nothing", accuracy["tuned"] - accuracy["from nothing"], GAIN)
