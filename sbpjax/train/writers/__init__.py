"""Writers of metrics: console, JSON lines, TensorBoard, Weights & Biases."""

from .bar import Bar as Bar
from .bar import console_writer as console_writer
from .jsonl import JsonLines as JsonLines
from .lines import Lines as Lines
from .tensorboard import TensorBoard as TensorBoard
from .wandb import WandB as WandB
from .writer import Writer as Writer
