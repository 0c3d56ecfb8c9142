import oneflow as flow
from oneflow import nn
import oneflow.nn.functional as F
from shown import fixed, show

x, y = fixed(3, 4), fixed(3, 4, seed=1)
show("cosine", F.cosine_similarity(x, y, dim=1))
show("layer", nn.CosineSimilarity(dim=0)(x, y))
show("normalize", F.normalize(x, p=2, dim=1))
show("pairwise", F.pairwise_distance(x, y))
embedded = F.normalize(flow.cat([x, y]), dim=1)
logits = embedded @ embedded.t() / 0.5
logits = logits - flow.eye(6) * 1e9
labels = flow.tensor([3, 4, 5, 0, 1, 2])
show("contrastive", F.cross_entropy(logits, labels))
