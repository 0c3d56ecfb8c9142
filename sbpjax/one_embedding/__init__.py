"""`oneflow.one_embedding`: embedding tables of a recommender, larger than the devices' memory."""

from sbpjax.nn import Module as Module
from sbpjax.nn import Parameter as Parameter
from sbpjax.optim import Ftrl as Ftrl

from .embedding import Embedding as Embedding
from .embedding import MultiTableEmbedding as MultiTableEmbedding
from .embedding import MultiTableMultiColumnEmbedding as MultiTableMultiColumnEmbedding
from .embedding import Optimizer as Optimizer
from .options import make_cached_host_mem_store_options as make_cached_host_mem_store_options
from .options import make_cached_ssd_store_options as make_cached_ssd_store_options
from .options import make_column_options as make_column_options
from .options import make_constant_initializer as make_constant_initializer
from .options import make_device_mem_store_options as make_device_mem_store_options
from .options import make_normal_initializer as make_normal_initializer
from .options import make_table as make_table
from .options import make_table_options as make_table_options
from .options import make_trunc_normal_initializer as make_trunc_normal_initializer
from .options import make_uniform_initializer as make_uniform_initializer
from .table_files import PersistentTableReader as PersistentTableReader
from .table_files import PersistentTableWriter as PersistentTableWriter
from .table_files import make_persistent_table_reader as make_persistent_table_reader
from .table_files import make_persistent_table_writer as make_persistent_table_writer
