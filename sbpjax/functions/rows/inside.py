"""Facts about ops that no row gives: those behind layers and operators."""

from __future__ import annotations

from ..table import note

note("recurrent cell", amp="lower")
note("pow_scalar rpow_scalar", amp="accelerator:float32")
# of functions that are not rows yet
note("linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d", amp="lower")
note("scaled_dot_product_attention", amp="lower")
note(
    """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss nll_loss smooth_l1_loss soft_margin_loss
    sparse_softmax_cross_entropy triplet_margin_loss""",
    amp="float32",
)
note("adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d", amp="cpu:float32")
note("bilinear", amp="accelerator:widest")
note(
    "normalize layer_norm group_norm rms_norm cosine_similarity pairwise_distance",
    amp="accelerator:float32",
)
