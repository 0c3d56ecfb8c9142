"""`DataLoader`: batches of a dataset, fetched in this process or by worker processes."""

from sbpjax.data.loading.dataloader import DataLoader as DataLoader
