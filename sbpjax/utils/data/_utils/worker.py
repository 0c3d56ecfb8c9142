"""An exception in a form that travels between processes."""

from sbpjax.data.loading.exception_wrapper import ExceptionWrapper as ExceptionWrapper
from sbpjax.data.loading.fetcher import WorkerInfo as WorkerInfo
from sbpjax.data.loading.fetcher import get_worker_info as get_worker_info
