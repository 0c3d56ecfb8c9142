"""Hooks of the training loop: evaluation, checkpoints, snapshots, logging, early stopping, averages, checks, traces."""

from .average import Average as Average
from .checkpoints import Checkpoints as Checkpoints
from .early_stop import EarlyStop as EarlyStop
from .early_stop import TargetMetric as TargetMetric
from .evaluation import Evaluation as Evaluation
from .hook import Hook as Hook
from .log import Log as Log
from .replicas import ReplicaCheck as ReplicaCheck
from .snapshots import Snapshots as Snapshots
from .stragglers import Stragglers as Stragglers
from .trace import Trace as Trace
