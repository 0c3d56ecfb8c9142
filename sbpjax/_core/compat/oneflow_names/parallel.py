"""`oneflow.nn.parallel`: data parallelism on the module itself, so names have no ``module.`` before them."""

from __future__ import annotations

from sbpjax.distributed import data_parallel as parallel


class DistributedDataParallel(parallel.DistributedDataParallel):
    """`sbpjax.nn.parallel.DistributedDataParallel` under the names of the module inside; see there for the options."""

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(self.module, name)

    def state_dict(self, *args, **options):
        return self.module.state_dict(*args, **options)

    def load_state_dict(self, *args, **options):
        return self.module.load_state_dict(*args, **options)

    def named_parameters(self, *args, **options):
        return self.module.named_parameters(*args, **options)

    def named_buffers(self, *args, **options):
        return self.module.named_buffers(*args, **options)

    def named_children(self):
        return self.module.named_children()
