"""Facts about ops that no row gives: those behind layers and operators."""

from __future__ import annotations

from ..table import note

note("recurrent cell", amp="lower")
note("pow_scalar rpow_scalar", amp="accelerator:float32")
# of functions of `nn.functional` that are not rows yet
note("scaled_dot_product_attention", amp="lower")
note("cross_entropy nll_loss sparse_softmax_cross_entropy", amp="float32")
note("huber_loss kl_div l1_loss mse_loss smooth_l1_loss", amp="float32")
note("layer_norm rms_norm", amp="accelerator:float32")
