import oneflow as flow
from shown import show

class Short(flow.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i == 2:
            raise KeyError("no such sample")
        return i

seen = []
try:
    for batch in flow.utils.data.DataLoader(Short(), batch_size=1):
        seen.append(batch.item())
    show("error", "no error")
except KeyError:
    show("error", "KeyError")
show("seen", seen)
try:
    flow.utils.data.DataLoader(Short(), batch_size=2, shuffle=True, sampler=flow.utils.data.SequentialSampler(Short()))
    show("options", "no error")
except ValueError:
    show("options", "ValueError")
