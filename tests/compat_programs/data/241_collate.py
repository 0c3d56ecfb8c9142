import oneflow as flow
from shown import show

class Texts(flow.utils.data.Dataset):
    sentences = [[1, 2, 3], [4], [5, 6]]

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"ids": flow.tensor(self.sentences[i]), "length": len(self.sentences[i]), "name": f"s{i}"}

def collate(samples):
    width = max(s["length"] for s in samples)
    ids = flow.zeros(len(samples), width, dtype=flow.int64)
    for i, s in enumerate(samples):
        ids[i, : s["length"]] = s["ids"]
    return {"ids": ids, "length": flow.tensor([s["length"] for s in samples]), "name": [s["name"] for s in samples]}

for i, batch in enumerate(flow.utils.data.DataLoader(Texts(), batch_size=2, collate_fn=collate)):
    show(f"batch {i}", batch)
