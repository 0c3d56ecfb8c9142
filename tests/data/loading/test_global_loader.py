"""Batches as global tensors: values, layouts, and that only the rows of this process are read."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.utils import data
from tests.data.loading import samples

LINE, GRID = ("cpu", [0, 1, 2, 3]), ("cpu", [[0, 1], [2, 3]])
S0, S1, B = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast


@pytest.mark.parametrize(
    ("where", "sbp"), [(LINE, S0), (LINE, B), (GRID, (S0, S1)), (GRID, (S0, B)), (GRID, (S0, S0))], ids=str
)
def test_values_and_layouts(where, sbp):
    placement = flow.placement(*where)
    loader = data.DataLoader(samples.Big(16, (4,)), 8, shuffle=True)
    flow.manual_seed(0)
    plain = [b.tolist() for b in loader]
    flow.manual_seed(0)
    batches = list(data.GlobalLoader(loader, placement, sbp))
    assert [b.tolist() for b in batches] == plain and len(batches) == 2
    for batch in batches:
        assert batch.placement == placement and batch.sbp == (sbp if isinstance(sbp, tuple) else (sbp,))


def test_each_tensor_may_have_its_own_sbp_and_only_needed_rows_are_read(monkeypatch):
    from sbpjax.data.loading import global_loader

    placement = flow.placement(*LINE)
    loader = data.DataLoader(samples.Numbers(8), 8)
    sbp = {"image": S0, "label": S0, "name": None, "extra": [S0, B]}
    loader.collate_fn = lambda batch: {**data.default_collate(batch), "name": None}
    with pytest.raises(TypeError):
        data.GlobalLoader(loader, placement, sbp)
    sbp["name"] = B
    (batch,) = data.GlobalLoader(loader, placement, sbp)
    assert batch["image"].sbp == (S0,) and batch["extra"][1].sbp == (B,) and batch["label"].tolist() == list(range(8))

    # as if ranks 2 and 3 were this process's only ones
    codes = frozenset({(0,)})
    layout_of = global_loader.layout_of

    def here(*args):
        layout = layout_of(*args)
        devices = layout.sharding.devices_indices_map(args[2])
        mine = {d: i for d, i in devices.items() if d.id in (2, 3)}

        class Sharding:
            def addressable_devices_indices_map(self, shape):
                return mine

        class Seen:
            sharding, partial_axes, is_even = Sharding(), (), True

        return Seen()

    monkeypatch.setattr(global_loader, "layout_of", here)
    global_loader.local_samples.cache_clear()
    assert global_loader.local_samples(placement, codes, 8) == (4, 5, 6, 7)
    part = global_loader._Part([[5, 3, 1, 0, 2, 4, 6, 7]], placement, codes)
    assert list(part) == [[2, 4, 6, 7]] and list(part.sizes) == [8]
    global_loader.local_samples.cache_clear()


def test_a_global_loader_goes_on_where_its_state_was_taken():
    loader = data.GlobalLoader(data.DataLoader(samples.Big(16, (4,)), 4, True), flow.placement(*LINE), S0)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [b.tolist() for b in batches]
    loader.load_state_dict(state)
    assert [b.tolist() for b in loader] == rest and len(rest) == 3


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_shorter_last_batch_behind_a_resume(shuffle):
    loader = data.GlobalLoader(data.DataLoader(samples.Big(12, (4,)), 8, shuffle), flow.placement(*LINE), S0)
    first, last = iter(loader), None
    next(first)
    state = loader.state_dict()
    last = next(first).tolist()
    loader.load_state_dict(state)
    assert loader.state_dict()["parts"] == state["parts"]
    rest = [b.tolist() for b in loader]
    assert rest == [last] and len(last) == 4


def test_what_cannot_be_spread():
    placement = flow.placement(*LINE)
    with pytest.raises(ValueError, match="the dataset needs an index"):
        data.GlobalLoader(data.DataLoader(samples.Stream(4), 2), placement, S0)
    with pytest.raises(ValueError, match="evenly"):
        list(data.GlobalLoader(data.DataLoader(samples.Big(7, (4,)), 4), placement, S0))
    with pytest.raises(ValueError, match="none may be partial_sum"):
        list(data.GlobalLoader(data.DataLoader(samples.Big(8, (4,)), 4), placement, flow.sbp.partial_sum))
    assert np.prod(placement.hierarchy) == 4
