"""A GPT of four layers on long sequences, compiled for TPUs that are not there, beside the same by hand in JAX.

Width 2048, 16 heads, vocabulary 32,768, bfloat16, AdamW, data parallel on v5p:2x2x1, one sequence a chip. By hand it
has JAX's splash attention, a scan over the layers and the loss of whole logits. Of each: the compiler's count of
temporaries, which has activations in it, and the multiply-adds of all products but attention's, counted in its
equations, loops as often as they run. Attention is the same kernel in both; it is counted by calls.

    python benchmarks/long_context.py ours 8192
    python benchmarks/long_context.py hand 16384 --checkpoint

It needs the TPU's compiler (`pip install jax[tpu]`), and no TPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CACHE_DIR", "off")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import jax.numpy as jnp

MACHINE, CHIPS = "v5p:2x2x1", 4
HEADS, WIDTH, LAYERS, VOCAB = 16, 2048, 4, 32768


def counted(jaxpr) -> tuple[float, int]:
    """Return the multiply-adds of the products of a program, twice each, and how often it calls attention."""
    from sbpjax._core.planner.prices.cost import flops
    from sbpjax._core.programs.primitives import ATTENTION

    total, calls = 0.0, 0
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in ATTENTION or name == "pallas_call":
            calls += 1
            continue
        total += flops(eqn)
        times = eqn.params["length"] if name == "scan" else 1
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    more, further = counted(inner)
                    total, calls = total + times * more, calls + times * further
    return total, calls


def ours(length: int, checkpoint: bool):
    """Return the compiled step of the example's model, and its equations."""
    import sbpjax as flow
    from examples.gpt.model import GPT, GPTConfig
    from sbpjax import nn, optim, sbp

    place = flow.placement.topology(MACHINE, [CHIPS])
    with flow.abstract():
        config = GPTConfig(vocab_size=VOCAB, context=length, layers=LAYERS, heads=HEADS, width=WIDTH)
        model = GPT(config).to(flow.bfloat16)
    model.to_global(place, [sbp.broadcast])

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optim.AdamW(model.parameters(), lr=1e-4))
            for block in self.model.blocks if checkpoint else ():
                block.to(nn.graph.GraphModule).activation_checkpointing = True

        def build(self, x, y):
            loss = self.model.loss(x, y)
            loss.backward()
            return loss

    step = Step()
    with flow.abstract():
        x = flow.zeros(CHIPS, length, dtype=flow.int64, placement=place, sbp=[sbp.split(0)])
    step.memory(x, x)
    program = step._g.latest[1]
    return program.compile(), program.plan.program


def hand(length: int, checkpoint: bool):
    """Return the compiled step as one writes it in JAX, and its equations."""
    import optax
    from jax.experimental import topologies
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(topologies.get_topology_desc(MACHINE, platform="tpu").devices, ("d",))
    names = ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute", "q_dq", "kv_dq")
    kernel = splash.make_splash_mha_single_device(
        masks.MultiHeadMask([masks.CausalMask((length, length))] * HEADS),
        block_sizes=splash.BlockSizes(**{f"block_{name}": 512 for name in names}),
    )
    data = PartitionSpec("d")
    scale = (WIDTH // HEADS) ** -0.5
    attend = jax.shard_map(
        lambda q, k, v: jax.vmap(kernel)(q * scale, k, v), mesh=mesh, in_specs=data, out_specs=data, check_vma=False
    )

    def norm(x, w, b):
        wide = x.astype(jnp.float32)
        scaled = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        return (scaled * w + b).astype(x.dtype)

    def block(x, p):
        y = norm(x, p["w1"], p["b1"])
        qkv = (y @ p["qkv"] + p["qkv_b"]).reshape(*y.shape[:2], 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
        x = x + attend(*qkv).transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"] + p["out_b"]
        y = jax.nn.gelu(norm(x, p["w2"], p["b2"]) @ p["up"] + p["up_b"])
        return x + y @ p["down"] + p["down_b"], None

    def loss(p, x, y):
        h, _ = jax.lax.scan(jax.checkpoint(block) if checkpoint else block, p["token"][x] + p["position"], p["blocks"])
        logits = (norm(h, p["w"], p["b"]) @ p["token"].T).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    def of(*shape, dtype=jnp.bfloat16):
        return jax.ShapeDtypeStruct(shape, dtype)

    sizes = {"w1": (), "b1": (), "w2": (), "b2": (), "out": (WIDTH,), "out_b": (), "down": (4 * WIDTH,), "down_b": ()}
    blocks = {name: of(LAYERS, *shape, WIDTH) for name, shape in sizes.items()}
    blocks |= {"qkv": of(LAYERS, WIDTH, 3 * WIDTH), "qkv_b": of(LAYERS, 3 * WIDTH)}
    blocks |= {"up": of(LAYERS, WIDTH, 4 * WIDTH), "up_b": of(LAYERS, 4 * WIDTH)}
    params = {"token": of(VOCAB, WIDTH), "position": of(length, WIDTH), "w": of(WIDTH), "b": of(WIDTH)}
    params["blocks"] = blocks
    update = optax.adamw(1e-4)
    state = jax.eval_shape(update.init, params)

    def step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        changes, state = update.update(grads, state, params)
        return optax.apply_updates(params, changes), state, value

    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, data)
    tokens = of(CHIPS, length, dtype=jnp.int32)
    placed = {"in_shardings": (whole, whole, split, split), "out_shardings": whole, "donate_argnums": (0, 1)}
    traced = jax.jit(step, **placed).trace(params, state, tokens, tokens)
    return traced.lower().compile(), traced.jaxpr.jaxpr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("ours", "hand"))
    parser.add_argument("length", type=int)
    parser.add_argument("--checkpoint", action="store_true")
    options = parser.parse_args()
    start = time.process_time()
    compiled, equations = (ours if options.which == "ours" else hand)(options.length, options.checkpoint)
    seconds = time.process_time() - start
    flops, calls = counted(equations)
    memory = compiled.memory_analysis()
    estimates = compiled.cost_analysis().get("optimal_seconds")
    print(
        f"{options.which} {options.length}{' checkpointed' * options.checkpoint}: "
        f"temporaries {memory.temp_size_in_bytes / 1e9:.2f} GB, "
        f"results beside the state {(memory.output_size_in_bytes - memory.alias_size_in_bytes) / 1e9:.2f} GB, "
        f"products {flops / 1e12:.1f} TFLOP in all, {calls} calls of attention, "
        f"compiler's optimal_seconds {estimates}, {seconds:.0f} s of CPU"
    )


if __name__ == "__main__":
    main()
