"""Training framework: datasets (`data/`), the loop (`trainer.py`), metrics (`evaluation/`), and commands.

    trainer = Trainer(model=…, optimizer=…, data=…, batch_size=32, max_steps=10_000, parallel=Parallel(data=8))
    trainer.fit()

`data/` is light: worker processes of a loader import it without JAX.
"""

from .compressed_gradients import CompressedGradients as CompressedGradients
from .gradient_guard import GradientGuard as GradientGuard
from .hooks import Average as Average
from .hooks import Checkpoints as Checkpoints
from .hooks import EarlyStop as EarlyStop
from .hooks import Evaluation as Evaluation
from .hooks import Hook as Hook
from .hooks import Log as Log
from .hooks import ReplicaCheck as ReplicaCheck
from .hooks import Snapshots as Snapshots
from .hooks import Stragglers as Stragglers
from .hooks import TargetMetric as TargetMetric
from .hooks import Trace as Trace
from .load_run import load_run as load_run
from .local_updates import OuterStep as OuterStep
from .local_updates import Replicas as Replicas
from .step import StepOptions as StepOptions
from .trainer import Trainer as Trainer
from .trainer import parameter_groups as parameter_groups
from .writers import JsonLines as JsonLines
from .writers import LineWriter as LineWriter
from .writers import ProgressBarWriter as ProgressBarWriter
from .writers import TensorBoard as TensorBoard
from .writers import WandB as WandB
from .writers import Writer as Writer
