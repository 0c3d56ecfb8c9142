"""`DataLoader`: batches of a dataset, fetched here or by worker processes."""

from sbpjax.data.loading.dataloader import DataLoader as DataLoader
