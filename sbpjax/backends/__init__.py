"""Settings of PyTorch's backends: kept, so that a script reads what it wrote, and without effect on XLA."""

from .settings import cuda as cuda
from .settings import cudnn as cudnn
from .settings import mkl as mkl
from .settings import mkldnn as mkldnn
from .settings import mps as mps
from .settings import openmp as openmp
from .settings import opt_einsum as opt_einsum
