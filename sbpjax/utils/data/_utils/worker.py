"""`ExceptionWrapper`: an exception that can be pickled."""

from sbpjax.data.loading.exception_wrapper import ExceptionWrapper as ExceptionWrapper
from sbpjax.data.loading.fetcher import WorkerInfo as WorkerInfo
from sbpjax.data.loading.fetcher import get_worker_info as get_worker_info
