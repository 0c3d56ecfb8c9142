"""What OneFlow 0.9's own search for layouts chooses; `tests/graph/auto/test_oneflow.py` holds plans against it.

OneFlow 0.9.0 needs Python 3.10 and an environment of its own (`benchmarks.oneflow_graph` says how it is made; its CUDA
libraries have to be found through ``LD_LIBRARY_PATH``). The graph is built, which ends with the search, and nothing
runs; parameters are never written, so their pages cost no memory:

    for model in huge big wide gpt; do
        of/bin/python -m oneflow.distributed.launch --nproc_per_node 8 benchmarks/oneflow_auto.py $model; done

Rank 0 prints the sbp of every parameter, and of the operands and results of products, lookups and their gradients. The
ranks leave as they finish; complaints about a lost machine after that are no matter.
"""

from __future__ import annotations

import math
import os
import sys
import time

import oneflow as flow  # type: ignore[import-not-found]
from oneflow import nn  # type: ignore[import-not-found]

PLACE = flow.placement("cpu", list(range(flow.env.get_world_size())))
WHOLE = flow.sbp.broadcast
SHOWN = (
    "matmul", "broadcast_matmul", "batch_matmul", "gather", "unsorted_segment_sum_like", "softmax", "relu",
    "sparse_softmax_cross_entropy",
)  # fmt: skip


def floats(*shape):
    return flow.empty(*shape, placement=PLACE, sbp=WHOLE)


def ids(*shape):
    return flow.zeros(*shape, dtype=flow.int64, placement=PLACE, sbp=WHOLE)


def par(*shape):
    return nn.Parameter(floats(*shape))


class Mlp(nn.Module):
    """Two matrices with a relu between, and a squared loss."""

    def __init__(self, width, hidden):
        super().__init__()
        self.w0, self.b0, self.w1, self.b1 = par(width, hidden), par(hidden), par(hidden, width), par(width)

    def forward(self, x, y):
        x = flow.relu(flow.matmul(x, self.w0) + self.b0)
        return ((flow.matmul(x, self.w1) + self.b1 - y) ** 2).mean()


class Wide(nn.Module):
    """Wide & deep: a weight per id, and a network of one hidden layer over their embeddings."""

    def __init__(self, rows, width, fields, hidden):
        super().__init__()
        self.wte, self.wide = par(rows, width), par(rows, 1)
        self.up, self.upb, self.down = par(fields * width, hidden), par(hidden), par(hidden, 1)

    def forward(self, rows, clicked):
        deep = flow._C.gather(self.wte, rows, axis=0).reshape(rows.shape[0], -1)
        deep = flow.matmul(flow.relu(flow.matmul(deep, self.up) + self.upb), self.down)
        score = flow._C.gather(self.wide, rows, axis=0).squeeze(2).sum(dim=1, keepdim=True) + deep
        return (flow.softplus(score) - clicked * score).mean()


class Norm(nn.Module):
    """A layer norm."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = par(width), par(width)

    def forward(self, x):
        c = x - x.mean(dim=-1, keepdim=True)
        return c * flow.rsqrt((c * c).mean(dim=-1, keepdim=True) + 1e-5) * self.scale + self.shift


class Block(nn.Module):
    """Attention and an MLP."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = Norm(d), Norm(d)
        self.wq, self.wk, self.wv, self.wo = par(d, d), par(d, d), par(d, d), par(d, d)
        self.wqb, self.wkb, self.wvb, self.wob = par(d), par(d), par(d), par(d)
        self.up, self.upb, self.down, self.downb = par(d, 4 * d), par(4 * d), par(4 * d, d), par(d)

    def forward(self, x):
        batch, time_, d = x.shape
        y = self.ln1(x)
        q, k, v = (
            (flow.matmul(y, w) + b).reshape(batch, time_, self.heads, d // self.heads).permute(0, 2, 1, 3)
            for w, b in ((self.wq, self.wqb), (self.wk, self.wkb), (self.wv, self.wvb))
        )
        weight = flow.softmax(flow.matmul(q, k.permute(0, 1, 3, 2)) / math.sqrt(d // self.heads), dim=-1)
        mixed = flow.matmul(weight, v).permute(0, 2, 1, 3).reshape(batch, time_, d)
        x = x + flow.matmul(mixed, self.wo) + self.wob
        hidden = flow.gelu(flow.matmul(self.ln2(x), self.up) + self.upb)
        return x + flow.matmul(hidden, self.down) + self.downb


class Gpt(nn.Module):
    """A GPT with learned positions and an untied head."""

    def __init__(self, layers, time_, d, heads, vocab):
        super().__init__()
        self.wte, self.wpe = par(vocab, d), par(time_, d)
        self.h = nn.ModuleList([Block(d, heads) for _ in range(layers)])
        self.lnf, self.head = Norm(d), par(d, vocab)

    def forward(self, tokens, targets):
        x = flow._C.gather(self.wte, tokens, axis=0) + self.wpe
        for layer in self.h:
            x = layer(x)
        logits = flow.matmul(self.lnf(x), self.head)
        flat = logits.reshape(-1, logits.shape[-1])
        return flow._C.sparse_softmax_cross_entropy(flat, targets.reshape(-1)).mean()


MODELS = {
    "huge": lambda: (Mlp(64, 16384), (floats(32, 64), floats(32, 64))),
    "big": lambda: (Mlp(128, 128), (floats(16384, 128), floats(16384, 128))),
    "wide": lambda: (Wide(400_000, 32, 26, 256), (ids(4096, 26), floats(4096, 1))),
    "gpt": lambda: (Gpt(2, 1024, 1024, 16, 50304), (ids(8, 1024), ids(8, 1024))),
}


class Train(nn.Graph):
    """A step of Adam whose layouts OneFlow chooses."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=1e-3))
        self.config.enable_auto_parallel(True)
        self.config.enable_auto_parallel_ignore_user_sbp_config(True)

    def build(self, *batch):
        loss = self.model(*batch)
        loss.backward()
        return loss


def short(sbp) -> str:
    """Return an sbp of OneFlow's job as ``S0``, ``P`` or ``B``."""
    if sbp.HasField("split_parallel"):
        return f"S{sbp.split_parallel.axis}"
    return "P" if sbp.HasField("partial_sum_parallel") else "B"


def main() -> None:
    model, batch = MODELS[sys.argv[1]]()
    graph = Train(model)
    began = time.time()
    graph.build_graph(*batch)
    if flow.env.get_rank() == 0:
        job = graph._full_job_proto
        chosen = job.job_parallel_view_conf.op_name2nd_sbp_signature_conf
        for op in job.net.op:
            kind = op.user_conf.op_type_name
            if kind in SHOWN or op.WhichOneof("op_type") == "variable_conf":
                ends = chosen[op.name].bn_in_op2nd_sbp
                print(kind, op.name, {k: ",".join(short(s) for s in ends[k].sbp_parallel) for k in sorted(ends)})
        print(f"{time.time() - began:.1f} s", flush=True)
    time.sleep(60)  # a rank that leaves takes the others along
    os._exit(0)


if __name__ == "__main__":
    main()
