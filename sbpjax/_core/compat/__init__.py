"""Other packages' names: aliases of torch and oneflow, and what these packages show that sbpjax has no use for."""
