"""Image transforms, also of boxes and masks, on Pillow images, NumPy arrays and tensors.

    ways = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(), Normalize(mean, std)], seed=0)
    ways(image, number=17)

* `base.py`: the base classes; `random_numbers.py`: random numbers by the sample's index; `kinds.py`: image kinds.
* `geometric.py`, `photometric.py`, `policies.py`: transforms; `geometry.py`, `colour.py`: the functions that they call.
* `mixing.py`: batches mixed with themselves; `on_device.py`: a pipeline for batches as one compiled program.

Worker processes of a loader import this folder without JAX: `tensors.py` is for tensors.
"""

from .base import Compose as Compose
from .base import RandomApply as RandomApply
from .base import Transform as Transform
from .geometric import CenterCrop as CenterCrop
from .geometric import RandomCrop as RandomCrop
from .geometric import RandomHorizontalFlip as RandomHorizontalFlip
from .geometric import RandomResizedCrop as RandomResizedCrop
from .geometric import RandomRotation as RandomRotation
from .geometric import RandomVerticalFlip as RandomVerticalFlip
from .geometric import Resize as Resize
from .geometric import SanitizeBoxes as SanitizeBoxes
from .mixing import CutMix as CutMix
from .mixing import MixUp as MixUp
from .mixing import mix as mix
from .on_device import OnDevice as OnDevice
from .photometric import ColorJitter as ColorJitter
from .photometric import Normalize as Normalize
from .photometric import RandomErasing as RandomErasing
from .photometric import RandomGrayscale as RandomGrayscale
from .photometric import ToDtype as ToDtype
from .photometric import ToTensor as ToTensor
from .policies import AugMix as AugMix
from .policies import AutoAugment as AutoAugment
from .policies import RandAugment as RandAugment
from .policies import TrivialAugmentWide as TrivialAugmentWide
from .random_numbers import generator as generator
