import numpy as np
import oneflow as flow
from shown import show

class Mixed(flow.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {"image": np.full((2, 2), i, dtype=np.float32), "label": i, "score": i / 2, "pair": (i, [i, float(i)]), "tag": "t%d" % i}

for i, batch in enumerate(flow.utils.data.DataLoader(Mixed(), batch_size=2)):
    show(f"image {i}", batch["image"])
    show(f"label {i}", batch["label"])
    show(f"score {i}", batch["score"])
    show(f"pair {i}", batch["pair"][0])
    show(f"tag {i}", batch["tag"])
