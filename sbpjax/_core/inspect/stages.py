"""`stages`: the features of sbpjax, the maturity of each, and its tests and pages.

    >>> sbpjax.stages("pipeline")
    area               feature                         stage  tests  benchmark    page                        note
    nn.Graph advanced  pipeline parallelism            alpha      3  pipeline.py  how_to/pipeline.md
    Old tutorials      a pipelined MLP on two devices  alpha      1  pipeline.py  tutorials/pipelined_mlp.md

`FEATURES` is the one table, `_ROWS` its text. `docs/reference/stages.md` is written from it (``make api``). A test
fails where a test, benchmark or page that it names is not there, or where a stage has less than it needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .display import Shown, Table

PLANNED, PRE_ALPHA, ALPHA, BETA = "planned", "pre-alpha", "alpha", "beta"
# From the least to the most: the meaning of a stage.
STAGES = {
    PLANNED: "not there",
    PRE_ALPHA: "a prototype, or not reached; limited tests, unknown performance, names that may change",
    ALPHA: "the core works, is tested and, where a figure makes sense, measured; names may change; there is a page",
    BETA: "complete for its users, who reviewed its names; tests of corners and whole programs, figures of scaling",
    "release candidate": "tried in production outside, with reports on performance and scaling; names reviewed",
    "stable": "for production; names are kept for a year",
}


@dataclass(frozen=True)
class Feature:
    """One promise.

    Attributes:
        area: its area.
        name: its name.
        stage: a key of `STAGES`.
        tests: tests that show it, ``"folder/file.py::function"`` in ``tests/``.
        benchmark: the script in ``benchmarks/`` that measures it, or empty.
        unmeasured: why a figure makes no sense, where there is no benchmark.
        page: the page in ``docs/`` that describes it, or empty.
        note: missing parts.
    """

    area: str
    name: str
    stage: str
    tests: tuple[str, ...] = ()
    benchmark: str = ""
    page: str = ""
    note: str = ""
    unmeasured: str = ""


# An area; in it a feature: name | stage | benchmark, or "no figure: " and why | page | note; below it its tests.
_ROWS = """
Global tensor
  placement; sbp split, broadcast, partial_sum | alpha | eager.py | tutorials/first_steps.md
    sbp/test_placement.py::test_hierarchies
    tensor/test_global.py::test_values_and_gradients
  the interface of local tensors | alpha | eager.py | tutorials/first_steps.md
    independence/test_independence.py::test_sample
    independence/test_tensor.py::test_write
  to_global from local, to_local | alpha | eager.py | tutorials/first_steps.md
    tensor/test_global.py::test_to_global_of_local_and_back
    nn/test_placing.py::test_one_process_divides
  conversion to other ranks or another sbp | alpha | eager.py | tutorials/first_steps.md
    sbp/test_boxing.py::test_every_pair_on_two_axes
    tensor/test_global.py::test_other_placements
  operands are converted by themselves | alpha | planner.py | tutorials/first_steps.md
    independence/test_independence.py::test_sample
    planner/test_exact.py::test_no_combination_is_cheaper_2d
  GPT, ResNet, BERT, ViT on it | alpha | graph_step.py | how_to/models.md
    examples/test_gpt.py::test_two_dimensional_layout_is_megatrons
    models_torch/test_models.py::test_two_dimensional_sbp
  Wide & Deep on it | alpha | recommend.py | how_to/recommenders.md
    models/recommend/test_training.py::test_every_layout_gives_the_curve_of_one_device
  Swin on it | alpha | vision.py | how_to/vision.md
    vision/models/test_data_parallel.py::test_losses_and_state_are_those_of_one_device
  InsightFace on it | alpha | large_softmax.py | how_to/large_softmax.md
    models/layers/test_margin_softmax.py::test_every_layout_gives_the_numbers_of_one_device
    examples/test_faces.py::test_a_small_run_learns_and_leaves_its_results
  together with DistributedDataParallel | alpha | features.py | reference/differences.md
    distributed/test_data_parallel.py::test_global_modules_are_called_as_they_are
nn.Graph basics
  ops eagerly and in graphs, forward and backward | alpha | graph_step.py | tutorials/parallel_training.md
    op_specs/test_specs.py::test_op
    op_specs/test_specs.py::test_corners
    independence/test_independence.py::test_sample
  nested lists, tuples and dicts in and out | alpha | features.py | reference/graph_options.md
    graph/test_graph.py::test_nested_results_come_back_as_they_were
  optimizers and schedules inside | alpha | graph_step.py | tutorials/parallel_training.md
    optim/test_schedule_state.py::test_verbose_prints_every_new_rate
    optim/test_in_graph.py::test_optimizers
    optim/test_in_graph.py::test_schedules
    optim/test_lr_scheduler.py::test_equals_torch
  add_optimizer(is_sparse=) | alpha | recommend.py | how_to/recommenders.md
    optim/test_sparse.py::test_rows_without_gradient_keep_value_and_state
    optim/test_row_steps.py::test_every_layout_gives_the_curve_of_one_device
    optim/test_row_steps.py::test_the_program_has_no_array_of_the_tables_shape_but_the_table_and_its_state
  state_dict, load_state_dict, resume | alpha | checkpoint.py | how_to/checkpoints.md
    graph/test_saving.py::test_resume_is_bit_exact_with_dropout
    distributed/test_checkpoints.py::test_training_survives_kills_at_random_moments
  debug(0…3), with the Python line of an op | alpha | features.py | reference/graph_options.md
    inspect/test_graph_text.py::test_debug_prints_phases_modules_ops_and_boxings
  memory of a step shown | alpha | absent.py | how_to/absent.md
    graph/auto/test_memory.py::test_a_limit_is_kept
    inspect/test_summary.py::test_bytes_are_of_one_device_and_sbps_of_results
nn.Graph advanced
  ZeRO | alpha | absent.py | tutorials/parallel_training.md
    graph/program/test_zero.py::test_losses_are_equal_at_every_stage
    graph/program/test_zero.py::test_per_device_bytes
    distributed/test_zero.py::test_fewer_devices_in_one_process
  sbp of outputs from that of inputs, on any number of axes | alpha | planner.py | explanation/planning.md
    independence/test_independence.py::test_sample
    oracle/test_signatures.py::test_layouts
  conversion of any sbp to any other, 1-D and n-D | alpha | planner.py | tutorials/first_steps.md
    sbp/test_boxing.py::test_every_pair_on_one_axis
    sbp/test_boxing.py::test_every_pair_on_two_axes
    compiler/test_between_placements.py::test_values_arrive
  semi-automatic choice: what is given is kept, the rest is planned | alpha | auto.py | how_to/auto_parallel.md
    graph/auto/test_choice.py::test_what_the_user_has_split_is_kept
  gradient accumulation | alpha | graph_step.py | tutorials/parallel_training.md
    graph/test_accumulation.py::test_in_the_loop_are_micro_batches_and_no_gradients
    graph/test_step.py::test_accumulated_gradients_are_the_mean
    graph/test_matrix.py::test_every_three_values_meet
  pipeline parallelism | alpha | pipeline.py | how_to/pipeline.md
    graph/pipeline/test_training.py::test_training_is_that_of_one_placement
    graph/pipeline/test_timing.py::test_stages_work_at_once
    graph/pipeline/test_paper.py::test_no_process_waits_for_ever
  automatic mixed precision | alpha | absent.py | tutorials/parallel_training.md
    graph/test_amp.py::test_the_bfloat16_curve_follows_the_float32_curve
    graph/test_amp.py::test_float16_with_a_scaler_follows_the_float32_curve
  activation checkpointing | alpha | absent.py | reference/graph_options.md
    graph/test_module_proxy.py::test_checkpointing_changes_no_number
    tracing/test_checkpoint.py::test_saves_only_inputs
  op fusion | alpha | graph_step.py | reference/graph_options.md | XLA does it
    compiler/test_hlo.py::test_lines
  execution by XLA | alpha | graph_step.py | reference/graph_options.md
    compiler/test_lower.py::test_each_step_on_two_axes_is_one_collective
    graph/test_config.py::test_every_option_of_oneflow_exists
  execution by OpenVINO, ONNX Runtime | alpha | engines.py | how_to/engines.md | graphs that compute on one device
    engines/test_program.py::test_every_family_live_and_loaded_with_a_free_batch
    engines/onnx/test_convert.py::test_operations
  execution by IREE | pre-alpha | engines.py | how_to/engines.md | its results are tested where the extra `iree` is
    engines/test_program.py::test_a_missing_engine_says_how_to_get_it
    engines/test_program.py::test_iree_takes_the_program_as_it_is
  execution by TensorRT | pre-alpha | no figure: no GPU ran it | how_to/engines.md | goes through ONNX Runtime
    engines/test_program.py::test_a_missing_engine_says_how_to_get_it
    engines/onnx/test_convert.py::test_tensorrt_takes_the_files_without_a_gpu
  auto parallelism with its options | alpha | oneflow_auto.py | how_to/auto_parallel.md | prices of chips are presets
    graph/auto/test_choice.py::test_a_local_model_trains_as_on_one_device
    graph/auto/test_oneflow.py::test_what_is_found_costs_no_more
    graph/test_config.py::test_prices_are_what_the_options_say
    models_torch/test_pretrained.py::test_a_graph_laid_out_by_the_planner_trains_alike
Eager speed
  faster than PyTorch on Swin, one device and eight | pre-alpha | eager_models.py | how_to/vision.md | not reached
    vision/models/test_swin.py::test_logits_and_gradients_of_timm
  data parallelism with fused all-reduces | alpha | features.py | how_to/launch.md
    distributed/test_data_parallel.py::test_the_program_has_one_collective_per_bucket
  ops in few programs | alpha | eager.py | explanation/design.md
    tensor/dispatch/test_dispatch.py::test_saves_only_what_backward_reads
    optim/test_compiled.py::test_compiled_steps_are_eager_steps
  less memory: backward keeps what it reads | alpha | no figure: a test counts the bytes | explanation/design.md
    tensor/dispatch/test_dispatch.py::test_saves_only_what_backward_reads
  DataLoader with shared memory | alpha | data.py | how_to/data.md
    data/loading/test_dataloader.py::test_a_batch_is_the_memory_it_came_in
    data/loading/test_global_loader.py::test_values_and_layouts
  clip_grad in one program | alpha | eager.py | reference/graph_options.md
    optim/test_clip_grad.py::test_clip_grad_norm
  elementwise ops on the CPU | alpha | small_things.py | reference/api_coverage.md
    functions/test_elementwise.py::test_unary
Operators
  interface, semantics and results of PyTorch | alpha | eager.py | reference/differences.md
    op_specs/test_specs.py::test_op
    api/test_coverage.py::test_priority_1_is_complete
  a framework that tests ops | alpha | features.py | how_to/adding_an_op.md
    op_specs/test_engine.py::test_a_wrong_op_is_found_and_shrunk
    testing/test_generate.py::test_corners_are_drawn_within_bounds
  import … as torch, and scripts unchanged | alpha | eager_models.py | how_to/torch_scripts.md
    compat/test_run.py::test_a_script_and_the_processes_it_starts
    models_torch/test_scripts.py::test_same_numbers
    models_torch/test_pretrained.py::test_a_folder_of_pytorch_s_gives_its_numbers
  einsum | alpha | features.py | reference/api_coverage.md
    ops/linalg/test_einsum.py::test_one_contraction_and_nothing_else
  views that share memory | alpha | eager.py | reference/differences.md
    tensor/storage/test_views.py::test_write_through_view
    tensor/storage/test_views.py::test_gradient_through_writes
Compiler
  graphs as StableHLO and back | alpha | features.py | how_to/export.md | by family of ops, not op by op
    graph/export/test_export.py::test_every_op_family_comes_back
  automatic fusion | alpha | graph_step.py | reference/graph_options.md | XLA does it
    compiler/test_hlo.py::test_lines
Serving
  weights and graph saved together, run without the model's code | alpha | features.py | how_to/export.md
    graph/export/test_export.py::test_a_sharded_training_graph_comes_back
    graph/export/test_export.py::test_one_export_for_many_platforms_and_devices
  OpenVINO without conversion by the user | alpha | engines.py | how_to/engines.md
    engines/test_program.py::test_every_family_live_and_loaded_with_a_free_batch
    graph/export/test_other_forms.py::test_a_model_reads_its_weights_from_the_weights_file
  TensorRT without conversion by the user | pre-alpha | no figure: no GPU ran it | how_to/engines.md
    engines/test_program.py::test_a_missing_engine_says_how_to_get_it
    engines/onnx/test_convert.py::test_tensorrt_takes_the_files_without_a_gpu
  inference from C++ | alpha | cpp_latency.py | how_to/serve.md | over OpenVINO; its tests need cmake: `make cpp`
    cpp/test_cpp.py::test_answers_are_those_of_python
  a backend for Triton | alpha | serving.py | how_to/serve.md | by its Python backend
    serving/test_triton.py::test_right_answers_batches_and_statistics
  generation for many requests at once | alpha | generation_load.py | how_to/serve.md | paged keys and values
    serving/test_generation.py::test_64_requests_in_any_order_get_the_tokens_of_generate
  configuration from the path alone | alpha | serving.py | how_to/serve.md
    serving/test_repository.py::test_only_a_path_is_given
Model library (LiBai)
  Llama, GPT-2, BERT laid out by tables, in Hugging Face's folders | alpha | models_vs_flax.py | how_to/models.md
    models/test_pretrained.py::test_logits_loss_and_gradients_are_those_of_transformers
    models/test_training.py::test_losses_are_those_of_one_device
  Mixtral, experts on an axis of their own by all-to-all | alpha | features.py | how_to/models.md
    models/layers/test_moe.py::test_tokens_go_to_their_experts_and_back_by_all_to_all
    models/layers/test_moe.py::test_every_layout_gives_the_values_of_one_device
  layers shared by families, extended by new ones | alpha | models_vs_flax.py | how_to/new_model.md
    models/test_new_model.py::test_a_mesh_trains_it_as_one_device_does
    models/test_new_model.py::test_it_computes_what_transformers_does
  AMP, checkpointing, accumulation, clipping, ZeRO of models on any mesh | alpha | models_vs_flax.py | how_to/train.md
    train/test_trainer.py::test_losses_do_not_depend_on_how_a_step_is_computed
    models/test_training.py::test_zero_on_a_mesh_of_data_and_tensor
  ViT in 3-D | alpha | vision.py | how_to/models.md
    vision/models/vit/test_vit.py::test_losses_are_those_of_one_device
    vision/models/vit/test_vit.py::test_logits_of_timm
  Swin data parallel | alpha | vision.py | how_to/vision.md
    vision/models/test_data_parallel.py::test_losses_and_state_are_those_of_one_device
  Evaluator: metrics exact on any number of ranks | alpha | features.py | how_to/train.md
    train/evaluation/test_metric.py::test_the_same_bits_however_samples_are_dealt
    train/evaluation/test_metric.py::test_two_processes
  Trainer, LazyConfig, python -m sbpjax.train | alpha | trainer_overhead.py | how_to/train.md
    train/test_trainer.py::test_losses_do_not_depend_on_the_mesh
    train/test_trainer.py::test_a_resumed_run_goes_on_as_if_nothing_had_happened
    train/test_kills.py::test_a_run_that_is_killed
    train/test_misuse.py::test_one_message_and_nothing_written
    examples/test_gpt2.py::test_losses_are_those_of_one_device
  token files of Megatron's layout, packed samples, blends | alpha | token_index.py | how_to/token_data.md
    train/data/test_token_file.py::test_a_killed_writer_leaves_nothing_half_visible
    train/data/test_packed.py::test_the_same_global_batches_on_any_number_of_ranks
    train/test_preprocess.py::test_files_do_not_depend_on_the_number_of_workers
  samples for BERT and T5, any step resumed at once | alpha | features.py | how_to/token_data.md
    train/data/test_resuming.py::test_the_same_batches_on_any_number_of_ranks_and_workers
    train/data/test_resuming.py::test_a_killed_run_loses_and_doubles_nothing
  images of a folder or of CIFAR, cut and mirrored | alpha | vision_data.py | how_to/token_data.md
    train/data/test_images.py::test_cuts_are_a_function_of_seed_and_number
  recommenders: Wide & Deep, DeepFM, DLRM, DCN, two towers | alpha | recommend.py | how_to/recommenders.md
    models/recommend/test_training.py::test_every_layout_gives_the_curve_of_one_device
    train/evaluation/test_auc.py::test_the_same_bits_for_any_order_and_any_dealing
  one_embedding: tables larger than the devices | alpha | one_embedding.py | how_to/large_tables.md
    one_embedding/test_cache.py::test_the_curve_of_a_dense_table
    one_embedding/test_cache.py::test_processes_that_own_shards_of_the_keys
    one_embedding/test_snapshots.py::test_kills_between_table_and_model_lose_nothing
  softmax of very many classes, with margins and partial FC | alpha | large_softmax.py | how_to/large_softmax.md
    models/layers/test_margin_softmax.py::test_every_layout_gives_the_numbers_of_one_device
    models/layers/test_margin_softmax.py::test_what_ranks_exchange_does_not_grow_with_the_classes
  fine-tuning, text classification | alpha | features.py | how_to/token_data.md
    examples/test_bert.py::test_a_small_run_learns_and_leaves_its_results
Vision (flowvision)
  trunc_normal_ | alpha | features.py | reference/api_coverage.md
    nn/test_init.py::test_distribution_is_torchs
  load_state_dict_from_url with a cache folder | alpha | features.py | reference/environment.md
    compat/test_hub.py::test_files_by_url
  DeiT, VisionTransformer, ConvNeXt, ReXNet, EfficientNet, Res2Net | alpha | vision.py | how_to/vision.md
    vision/models/vit/test_zoo.py::test_logits_and_gradients_of_timm
    vision/models/test_convnext.py::test_logits_and_gradients_of_timm
    vision/models/test_rexnet.py::test_logits_and_gradients_of_timm
    vision/models/test_efficientnet.py::test_logits_and_gradients_of_timm
    vision/models/test_res2net.py::test_logits_and_gradients_of_timm
  vit_small_patch32_384, res2net50_48w_2s by name | alpha | vision_features.py | how_to/vision.md
    vision/models/test_registry.py::test_names
    vision/models/test_registry.py::test_every_model_is_built_without_memory
  a page for every family of models | alpha | no figure: pages | reference/image_models/index.md
    vision/test_zoo_table.py::test_every_model_is_on_one_page
    vision/test_zoo_table.py::test_code_of_a_page_runs
  SSD | alpha | vision_features.py | how_to/vision_data.md
    vision/models/detection/test_ssd.py::test_detections_of_torchvision
  PolyLRScheduler, TanhLRScheduler | alpha | vision_features.py | how_to/vision_data.md
    vision/training/test_schedules.py::test_rates_of_timm
  model zoo with weights | alpha | vision_features.py | how_to/vision.md | weights are read from files; none are shipped
    vision/models/test_registry.py::test_checkpoints
    vision/models/test_registry.py::test_every_model_is_built_without_memory
Distributed package
  world size, rank, local rank, node size | alpha | agreement.py | how_to/launch.md
    distributed/test_env.py::test_one_process_answers
    distributed/test_launch.py::test_environment_and_prefixes
  RDMA: init and query | pre-alpha | no figure: NCCL does it, or not | reference/compatibility.md | without effect
    runtime/test_lifecycle.py::test_names_that_are_less_than_alpha_are_marked
  DistributedDataParallel | alpha | features.py | how_to/launch.md
    distributed/test_data_parallel.py::test_gradients_are_averaged
    distributed/test_data_parallel.py::test_all_gradients_are_reduced_in_one_program
  PyTorch's collectives | alpha | features.py | explanation/processes.md
    distributed/test_collectives.py::test_threads
  the launcher | alpha | startup.py | how_to/launch.md
    distributed/test_launch.py::test_restarts
    distributed/test_launch.py::test_failure_names_the_rank_its_code_and_last_lines
    distributed/test_launch.py::test_redirected_output
The paper
  one mechanism for all parallelism and divided optimizers | alpha | oneflow_graph.py | tutorials/parallel_training.md
    graph/test_matrix.py::test_every_three_values_meet
    graph/pipeline/test_training.py::test_options_compose
  resource-bounded execution with back-pressure | alpha | pipeline.py | how_to/pipeline.md
    graph/pipeline/test_paper.py::test_no_process_waits_for_ever
    graph/pipeline/test_timing.py::test_what_stages_hold_does_not_grow_with_the_number_of_micro_batches
    data/loading/test_dataloader.py::test_a_slow_consumer_stops_the_workers
  against Megatron-LM, HugeCTR, ZeRO-DP on clusters | planned | no figure: there was no cluster
  elastic scaling | pre-alpha | features.py | how_to/launch.md | by a new start on other devices; none join a job
    distributed/test_launch.py::test_a_rank_may_ask_for_a_restart
    distributed/test_checkpoints.py::test_training_survives_kills_at_random_moments
  auto placement | pre-alpha | pipeline.py | how_to/pipeline.md
    graph/pipeline/test_paper.py::test_auto_stages_places_the_modules
Vision (flowvision)
  boxes, suppression, features of regions, focal and IoU losses | alpha | vision_features.py | how_to/vision_data.md
    vision/ops/test_boxes.py::test_values_and_gradients_of_torchvision
    vision/ops/test_suppression.py::test_images_of_a_batch_stay_split_in_a_graph
    vision/ops/test_regions.py::test_means_of_torchvision
  transforms of images, boxes and masks; batches as one program | alpha | vision_data.py | how_to/vision_data.md
    vision/transforms/test_geometry.py::test_pixels_of_torchvision
    vision/transforms/test_policies.py::test_pixels_of_torchvision
    vision/transforms/test_on_device.py::test_values_of_compose
  datasets: folders, CIFAR, COCO, Pascal VOC | alpha | vision_data.py | how_to/vision_data.md
    vision/datasets/test_folder.py::test_a_sample_is_the_same_in_any_worker
    vision/datasets/test_coco.py::test_boxes_masks_and_keypoints
  weights by URL: resumed, locked, checked, offline | alpha | features.py | how_to/vision_data.md
    compat/test_download.py::test_a_server_that_breaks_off_is_asked_for_the_rest
  schedules and losses of recipes; COCO's scores, mean IoU | alpha | vision_features.py | how_to/vision_data.md
    vision/training/test_schedules.py::test_rates_of_timm
    vision/metrics/test_average_precision.py::test_recorded_scores
  SSD300, RetinaNet, Faster R-CNN | alpha | vision_features.py | how_to/vision_data.md
    vision/models/detection/test_ssd.py::test_detections_of_torchvision
    vision/models/detection/test_retinanet.py::test_losses_of_torchvision
    vision/models/detection/test_faster_rcnn.py::test_losses_of_torchvision
  DeepLabV3, FCN | alpha | vision_features.py | how_to/vision_data.md
    vision/models/segmentation/test_deeplabv3.py::test_as_torchvision
    vision/models/segmentation/test_base.py::test_learns_the_same_on_two_devices
  models of the Hugging Face Hub in timm's layout | alpha | vision_features.py | how_to/vision.md
    vision/models/test_from_hub.py::test_a_model_comes_once
    vision/models/test_from_hub.py::test_a_server_that_lies_or_ends_early_leaves_nothing
  recipes: digits by ResNet, ViT and Swin, shapes by SSD300, transfer | alpha | vision.py | tutorials/images.md
    examples/test_vision.py::test_a_vit_on_meshes_and_by_the_planner
    examples/test_vision.py::test_scores_are_those_of_pycocotools
Old tutorials
  an MLP by data, by model, and both | alpha | auto.py | tutorials/hybrid_parallel.md
    documentation/test_guides.py::test_a_session_prints_what_the_page_says
  the algebra of layers in pictures | alpha | no figure: pictures | tutorials/pictures.md
    documentation/test_guides.py::test_the_pictures_of_tensors_are_those_of_the_session
  a pipelined MLP on two devices | alpha | pipeline.py | tutorials/pipelined_mlp.md
    documentation/test_guides.py::test_a_session_prints_what_the_page_says
  old names say what to write today | alpha | no figure: what they do is to raise an error | how_to/oneflow_scripts.md
    api/test_coverage.py::test_old_names_say_how_it_is_written_today
Notebooks
  values as pictures and tables, waits said below the cell | alpha | features.py | how_to/notebooks.md
    inspect/test_notebook.py::test_a_tensor_is_what_it_prints_and_where_its_parts_lie
    distributed/test_notebook.py::test_in_a_kernel
  a cell on several processes | alpha | startup.py | how_to/notebooks.md
    distributed/test_notebook.py::test_an_error_is_shown_once_with_its_rank
    distributed/test_notebook.py::test_in_a_kernel
"""


def _features(text: str) -> Iterator[Feature]:
    area, lines = "", text.strip("\n").split("\n")
    for i, line in enumerate(lines):
        if not line.startswith(" "):
            area = line
        elif not line.startswith("    "):
            tests = itertools.takewhile(lambda below: below.startswith("    "), lines[i + 1 :])
            name, stage, benchmark, page, note = [*map(str.strip, line.split("|")), "", "", ""][:5]
            why = benchmark if benchmark.startswith("no figure: ") else ""
            yield Feature(area, name, stage, tuple(map(str.strip, tests)), "" if why else benchmark, page, note, why)


def _by_area(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Return rows of one area one after the other, where the area is first met."""
    areas: dict[str, list[Feature]] = {}
    for feature in features:
        areas.setdefault(feature.area, []).append(feature)
    return tuple(itertools.chain.from_iterable(areas.values()))


FEATURES = _by_area(_features(_ROWS))


class Stages(Shown):
    """The table of features; `features` has the rows."""

    def __init__(self, features: Iterable[Feature]) -> None:
        self.features = tuple(features)

    def _blocks(self) -> Iterable[Any]:
        rows = [
            (f.area, f.name, f.stage, str(len(f.tests)), f.benchmark or f.unmeasured or "-", f.page or "-", f.note)
            for f in self.features
        ]
        if rows:
            yield Table(rows, ("area", "feature", "stage", "tests", "benchmark", "page", "note"), right=(3,))
        else:
            yield "no such feature"


def stages(about: str = "") -> Stages:
    """Return the features, the maturity of each, and its tests, benchmark and page.

    Args:
        about: only features whose area, name or stage has this text in it, capitals aside.

    Returns:
        A `Stages`: print it, or show it in a notebook; ``stages().features`` names the tests.

    Example:
        >>> [feature.stage for feature in stages("zero").features][:1]
        ['alpha']
    """
    wanted = about.lower()
    return Stages(f for f in FEATURES if any(wanted in text.lower() for text in (f.area, f.name, f.stage)))
