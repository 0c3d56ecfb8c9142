"""Every option of OneFlow exists, checks its value, and is listed with what becomes of it."""

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphConfigError
from sbpjax.graph.config import STATED, STRAIGHTEN, GraphConfig
from sbpjax.graph.planner_config import AUTO_MEMORY

ONEFLOW = (
    "allow_fuse_add_to_output allow_fuse_model_update_ops allow_fuse_cast_scale enable_amp enable_auto_parallel "
    "enable_auto_parallel_ignore_user_sbp_config enable_auto_parallel_sbp_collector enable_auto_parallel_trunk_algo "
    "enable_zero set_auto_parallel_computation_cost_ratio set_auto_parallel_wait_time enable_auto_memory "
    "set_gradient_accumulation_steps enable_choose_best_memory_allocation enable_compress_memory "
    "enable_fused_model_update_cast enable_multi_tensor_update enable_straighten_algorithm set_outputs_buffer_size "
    "training enable_cudnn_conv_heuristic_search_algo set_zero_redundancy_optimizer_mode"
).split()
OTHER = {"enable_auto_memory", "enable_straighten_algorithm"}
FLAGS = [n for n in ONEFLOW if n.startswith(("allow_", "enable_")) and n not in OTHER]


@pytest.mark.parametrize("name", ONEFLOW)
def test_every_option_of_oneflow_exists(name):
    assert hasattr(GraphConfig(), name)


@pytest.mark.parametrize("name", FLAGS)
def test_flags_take_a_bool_and_nothing_else(name):
    config = GraphConfig()
    getattr(config, name)()
    getattr(config, name)(False)
    with pytest.raises(GraphConfigError, match=rf"(?s)config.{name}\('yes'\).*seen: a str.*fix:  {name}\(True\)"):
        getattr(config, name)("yes")


@pytest.mark.parametrize("name", STATED)
def test_what_chooses_nothing_says_so(name):
    config = GraphConfig()
    value = {"enable_straighten_algorithm": "SpeedFirst"}.get(name, 3 if name.startswith("set_") else True)
    getattr(config, name)(value)
    (line,) = [line for line in repr(config).splitlines() if line.strip().startswith(f"{name}(")]
    assert line.strip() == f"{name}({value!r}): {STATED[name]}"
    assert config.key() == GraphConfig().key()


@pytest.mark.parametrize(
    "set_it",
    [
        lambda c: c.set_gradient_accumulation_steps(2),
        lambda c: c.set_clip_grad_norm(1.0),
        lambda c: c.enable_amp(True, dtype=flow.bfloat16),
        lambda c: c.enable_amp(),
        lambda c: c.enable_zero(True, stage=1),
        lambda c: c.enable_zero(),
        lambda c: c.enable_zero(True, shard_min_size=1),
        lambda c: c.enable_zero(True, stage=3, shard_restore_level=0),
        lambda c: c.set_zero_redundancy_optimizer_mode(),
        lambda c: c.set_lowering("gspmd"),
        lambda c: c.enable_block_scan(True),
        lambda c: c.enable_auto_memory("HeavyAutoMemory"),
        lambda c: c.enable_auto_memory("Disable", memory_limit_bytes=1e9),
        lambda c: c.set_auto_parallel_computation_cost_ratio(0.5),
        lambda c: c.set_auto_parallel_wait_time(10),
        lambda c: c.set_auto_parallel_cost_model("v5p"),
        lambda c: c.enable_auto_parallel_trunk_algo(False),
        lambda c: c.enable_auto_parallel_sbp_collector(False),
        lambda c: c.enable_auto_parallel(),
        lambda c: c.enable_auto_parallel(True, placement=flow.placement("cpu", [0, 1])),
        lambda c: (c.enable_auto_parallel(), c.enable_auto_parallel_ignore_user_sbp_config()),
    ],
)
def test_what_changes_the_program_is_part_of_its_key(set_it):
    config = GraphConfig()
    set_it(config)
    assert config.key() != GraphConfig().key()
    hash(config.key())


@pytest.mark.parametrize(
    "set_it, rule",
    [
        (lambda c: c.set_gradient_accumulation_steps(0), "a whole number of at least 1"),
        (lambda c: c.set_gradient_accumulation_steps(2.0), "a whole number of at least 1"),
        (lambda c: c.set_gradient_accumulation_steps(True), "a whole number of at least 1"),
        (lambda c: c.enable_amp(True, dtype=flow.float32), "float16 or bfloat16"),
        (lambda c: c.enable_zero(True, stage=4), r"one of \[1, 2, 3\]"),
        (lambda c: c.enable_zero(True, shard_min_size=0), "at least 1"),
        (lambda c: c.enable_zero(True, shard_restore_level=3), r"one of \[0, 1, 2\]"),
        (lambda c: c.set_zero_redundancy_optimizer_mode("all"), "distributed_split"),
        (lambda c: c.set_lowering("mpi"), "spmd"),
        (lambda c: c.set_max_programs(0), "at least 1"),
        (lambda c: c.set_outputs_buffer_size(0), "at least 1"),
        (lambda c: c.enable_straighten_algorithm("Fast"), "MemoryFirst"),
        (lambda c: c.enable_auto_memory("Some"), "AdaptiveMemory"),
        (lambda c: c.enable_auto_memory(memory_limit_bytes=0), "at least 1"),
        (lambda c: c.enable_auto_memory(memory_limit_bytes="80G"), "at least 0"),
        (lambda c: c.set_auto_parallel_cost_model(3), "name of a preset or a CostModel"),
        (lambda c: c.set_auto_parallel_wait_time(-1), "at least 0"),
        (lambda c: c.set_auto_parallel_computation_cost_ratio("1"), "at least 0"),
        (lambda c: c.enable_auto_parallel_ignore_user_sbp_config(1), "on or off"),
        (lambda c: c.enable_auto_parallel(True, placement="cpu"), "placement is an sbpjax.placement"),
    ],
)
def test_values_out_of_range_are_refused_and_change_nothing(set_it, rule):
    config = GraphConfig()
    with pytest.raises(GraphConfigError, match=rf"(?s)config\..*seen: .*rule: .*{rule}.*fix: "):
        set_it(config)
    assert config.key() == GraphConfig().key()


@pytest.mark.parametrize("mode", STRAIGHTEN)
def test_orders(mode):
    GraphConfig().enable_straighten_algorithm(mode)


@pytest.mark.parametrize("mode", AUTO_MEMORY)
def test_memory_levels(mode):
    config = GraphConfig()
    config.enable_auto_memory(mode, memory_limit_bytes=2e9)
    assert f"auto_memory: {mode}, at most 2,000,000,000 bytes per device" in repr(config)


def test_prices_are_what_the_options_say():
    place = flow.placement("cpu", [0, 1, 2, 3])
    config = GraphConfig()
    assert config.prices(place) == {}  # what every program is planned by
    config.enable_auto_parallel()
    config.set_auto_parallel_cost_model("v5p")
    config.set_auto_parallel_computation_cost_ratio(0.5)
    config.set_auto_parallel_wait_time(7)
    config.enable_auto_parallel_trunk_algo(False)
    config.enable_auto_parallel_sbp_collector(False)
    config.enable_auto_memory("ModerateMemoryDown", memory_limit_bytes=1e9)
    prices = config.prices(place)
    cost = prices["cost"]
    assert (cost.name, cost.compute_ratio, cost.alpha_us, cost.hides, cost.shares) == ("v5p", 0.5, 7, False, False)
    assert cost.memory_us_per_byte == pytest.approx(4.3 / 4 / 600e9 * 1e6) and prices["memory_bytes"] == 1e9
    config.set_auto_parallel_cost_model()
    assert config.prices(place)["cost"].name == "h100"


def test_the_text_names_what_is_set():
    config = GraphConfig()
    config.enable_zero(True, stage=3)
    config.enable_amp(True, dtype=flow.bfloat16)
    config.set_gradient_accumulation_steps(8)
    text = repr(config)
    assert "gradient_accumulation_steps: 8" in text
    assert "amp: sbpjax.bfloat16" in text
    assert "zero: stage 3, from 1024 elements, restore level 1" in text


def test_training_is_whether_there_is_an_optimizer():
    class Training(nn.Graph):
        def __init__(self):
            super().__init__()
            assert not self.config.training
            self.net = nn.Linear(2, 2)
            self.add_optimizer(flow.optim.SGD(self.net.parameters(), lr=0.1))

    assert Training().config.training and Training().training


@pytest.mark.parametrize("arguments", [(0,), (-1.0,), ("1",), (True,), (1.0, 0), (float("nan"),)])
def test_a_bound_of_the_norm_is_a_number_above_zero(arguments):
    config = GraphConfig()
    with pytest.raises(GraphConfigError, match=r"(?s)config.set_clip_grad_norm.*numbers above 0"):
        config.set_clip_grad_norm(*arguments)
    config.set_clip_grad_norm(2)
    assert config.clip_grad_norm == (2.0, 2.0) and "clip_grad_norm: 2.0" in repr(config)
    config.set_clip_grad_norm(None)
    assert config.key() == GraphConfig().key()


def test_fewer_layers_are_a_loop_on_several_cpu_ranks():
    config = GraphConfig()
    found = [config.least_iterations(*where) for where in (("cpu", 1), ("cpu", 2), ("cuda", 1), ("tpu", 8))]
    assert found[1] < found[2] == found[3] < found[0]
    config.enable_block_scan(False)
    assert config.least_iterations("cpu", 8) == 0
