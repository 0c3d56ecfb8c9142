"""The functions behind the layers, with PyTorch's signatures; one family per file."""

from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .ctc import ctc_greedy_decoder as ctc_greedy_decoder
from .ctc import ctc_loss as ctc_loss
from .depend import depend as depend
from .dropout import alpha_dropout as alpha_dropout
from .dropout import dropout as dropout
from .dropout import dropout1d as dropout1d
from .dropout import dropout2d as dropout2d
from .dropout import dropout3d as dropout3d
from .dropout import feature_alpha_dropout as feature_alpha_dropout
from .embedding import embedding as embedding
from .embedding import embedding_bag as embedding_bag
from .embedding import one_hot as one_hot
from .grid import affine_grid as affine_grid
from .grid import deform_conv2d as deform_conv2d
from .grid import grid_sample as grid_sample
from .loss import cross_entropy as cross_entropy
from .loss import huber_loss as huber_loss
from .loss import kl_div as kl_div
from .loss import l1_loss as l1_loss
from .loss import mse_loss as mse_loss
from .loss import nll_loss as nll_loss
from .loss import smooth_l1_loss as smooth_l1_loss
from .losses import combined_margin_loss as combined_margin_loss
from .losses import gaussian_nll_loss as gaussian_nll_loss
from .losses import sparse_softmax_cross_entropy as sparse_softmax_cross_entropy
from .losses import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .multihead import multi_head_attention_forward as multi_head_attention_forward
from .norm import batch_norm as batch_norm
from .norm import instance_norm as instance_norm
from .norm import layer_norm as layer_norm
from .norm import rms_norm as rms_norm
from .pooling import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
from .pooling import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
from .pooling import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
from .pooling import max_pool1d_with_indices as max_pool1d_with_indices
from .pooling import max_pool2d_with_indices as max_pool2d_with_indices
from .pooling import max_pool3d_with_indices as max_pool3d_with_indices
from .resize import interpolate as interpolate
from .resize import interpolate_like as interpolate_like
from .resize import upsample as upsample
from .resize import upsample_bilinear as upsample_bilinear
from .resize import upsample_nearest as upsample_nearest
from .unpool import fractional_max_pool2d as fractional_max_pool2d
from .unpool import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from .unpool import fractional_max_pool3d as fractional_max_pool3d
from .unpool import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices

from sbpjax.functions.table import face as _face  # isort: skip
from sbpjax.tensor.wrong_call import tell as _tell  # isort: skip

_tell(globals())
__getattr__, __dir__ = _face("nn.functional", globals())
