"""Loaders: the same batches for any number of workers, errors, ends, and going on later."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.utils import data
from tests.data.loading import samples


def flat(batch):
    """Return a batch's tensors as nested lists."""
    if isinstance(batch, dict):
        return {k: flat(v) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [flat(v) for v in batch]
    assert not isinstance(batch, np.ndarray)
    return batch.tolist() if isinstance(batch, flow.Tensor) else batch


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("shape", [(3, 5), (64, 33)], ids=["pickled", "shared memory"])
def test_batches_do_not_depend_on_the_number_of_workers(shape):
    seen = []
    for workers in (0, 1, 3):
        flow.manual_seed(1)
        loader = data.DataLoader(samples.Numbers(22, shape), 4, shuffle=True, num_workers=workers, drop_last=True)
        assert len(loader) == 5
        epochs = [[flat(batch) for batch in loader] for _ in range(2 if workers == 1 else 1)]
        assert len(epochs[-1]) == 5 and (len(epochs) == 1 or epochs[0] != epochs[1])
        seen.append(epochs[0])
    assert seen[0] == seen[1] == seen[2]
    assert isinstance(seen[0][0]["name"], list) and np.shape(seen[0][0]["image"]) == (4, *shape)


def test_batches_stay_as_they_are_while_held():
    loader = data.DataLoader(samples.Big(40, (50, 50)), 4, num_workers=2, pin_memory=True)
    held = list(loader)
    for i, batch in enumerate(held):
        assert batch.shape == (4, 50, 50) and batch[:, 0, 0].tolist() == [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]


@pytest.mark.parametrize("shape", [(3,), (64, 64)], ids=["pickled", "shared memory"])
def test_a_slow_consumer_stops_the_workers(shape, tmp_path):
    file = tmp_path / "fetched"
    loader = data.DataLoader(samples.Counted(400, shape, file), 4, num_workers=2, prefetch_factor=3)
    batches = iter(loader)
    for taken in (1, 2, 3):
        next(batches)
        fetched = -1
        while fetched != (fetched := file.stat().st_size):
            time.sleep(0.5)  # until nobody fetches any more
        assert fetched == 4 * (taken + 2 * 3)  # what was taken, and `prefetch_factor` batches for each worker
    assert sum(1 for _ in batches) == 97 and file.stat().st_size == 400


def test_a_batch_is_the_memory_it_came_in():
    batch = next(iter(data.DataLoader(samples.Big(4, (50, 50)), 4, num_workers=1)))
    array = batch.jax()
    assert array.unsafe_buffer_pointer() % 64 == 0 and not array.committed
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if "sbpjax-data" in line]
    spans = [[int(end, 16) for end in line[0].split("-")] for line in maps]
    assert any(begin <= array.unsafe_buffer_pointer() < end for begin, end in spans)


def test_workers_have_no_jax_persist_and_end():
    loader = data.DataLoader(samples.WhereAmI(8), 1, num_workers=2, persistent_workers=True)
    first = {tuple(row.tolist()[0]) for row in loader}
    second = {tuple(row.tolist()[0]) for row in loader}
    pids = {pid for pid, *_ in first | second}
    assert len(pids) <= 2 and os.getpid() not in pids
    batch_policy = getattr(os, "SCHED_BATCH", 3)  # so that a worker does not preempt the loop that wakes it
    assert all(found == [0, 1, batch_policy] for _, *found in first | second)
    assert all(alive(pid) for pid in pids)
    loader.close()
    assert not any(alive(pid) for pid in pids)
    again = data.DataLoader(samples.WhereAmI(4), None, num_workers=1)
    pids = {row.tolist()[0] for row in again}
    assert not any(alive(pid) for pid in pids)


def test_an_iterable_dataset_is_shared_by_its_own_rule():
    flow.manual_seed(0)
    whole = [row.tolist() for row in data.DataLoader(samples.Stream(10), 4)]
    assert [[i for i, _ in rows] for rows in whole] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    loader = data.DataLoader(samples.Stream(10), 2, num_workers=2, drop_last=True)
    runs = []
    for _ in range(2):
        flow.manual_seed(0)
        runs.append([row.tolist() for row in loader])
    assert runs[0] == runs[1]
    assert [[i for i, _ in rows] for rows in runs[0]] == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_functions_go_to_workers_by_value_too():
    scale = 3
    loader = data.DataLoader(
        samples.Big(6, (2,)), 3, num_workers=1, collate_fn=lambda batch: (np.stack(batch) * scale, len(batch))
    )
    batches = list(loader)
    assert all(type(array) is np.ndarray and n == 3 for array, n in batches)
    assert batches[1][0][0].tolist() == [9, 9]
    options = {"worker_init_fn": samples.set_global, "collate_fn": samples.collate_global}
    assert next(iter(data.DataLoader(samples.Big(3, (2,)), 3, num_workers=1, **options)))[0] == 100
    tensors = data.TensorDataset(flow.arange(6).reshape(3, 2), flow.tensor([1, 2, 3]))
    (x, y) = next(iter(data.DataLoader(tensors, 3, num_workers=1)))
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]] and y.tolist() == [1, 2, 3]


def test_a_workers_error_has_its_traceback_and_the_rest_goes_on():
    loader = iter(data.DataLoader(samples.Failing(8, "key"), 2, num_workers=2))
    assert [next(loader).shape, next(loader).shape] == [(2, 2)] * 2
    with pytest.raises(KeyError) as caught:
        next(loader)
    text = str(caught.value)
    assert "Caught KeyError in DataLoader worker process" in text and "in __getitem__" in text and "\n" in text
    assert next(loader).shape == (2, 2)
    with pytest.raises(StopIteration):
        next(loader)


def test_what_workers_cannot_do_is_said():
    with pytest.raises(RuntimeError, match="sbpjax.nn.Module.*workers have no JAX|workers have no JAX"):
        list(data.DataLoader(samples.Failing(6, "module"), 6, num_workers=1))
    with pytest.raises(AttributeError, match="Tensor.to_global in a data worker"):
        list(data.DataLoader(samples.Failing(6, "method"), 6, num_workers=1))
    with pytest.raises(RuntimeError, match=r"\(pid \d+\) exited unexpectedly") as caught:
        list(data.DataLoader(samples.Failing(6, "exit"), 6, num_workers=1))
    assert "exit code 3" in str(caught.value)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 4 seconds"):
        list(data.DataLoader(samples.Failing(6, "sleep"), 6, num_workers=1, timeout=4))
    assert time.monotonic() - begin < 30

    with pytest.raises(RuntimeError, match="(?s)a module in the dataset or its functions: Linear.*num_workers=0"):
        list(data.DataLoader(samples.Holding(3), num_workers=1))

    class Local(samples.Numbers):
        pass

    with pytest.raises(RuntimeError, match="values for worker processes are pickled"):
        list(data.DataLoader(Local(3), num_workers=1))


def test_samples_made_with_tensor_functions_are_the_same_in_workers():
    here, there = (list(data.DataLoader(samples.Tensors(5), 2, num_workers=n)) for n in (0, 2))
    assert len(here) == len(there) == 3
    for a, b in zip(here, there, strict=True):
        for x, y in zip(a, b, strict=True):
            assert type(x) is type(y) is flow.Tensor and x.dtype == y.dtype
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_with_an_index_does_not_end_an_epoch(workers):
    with pytest.raises(flow.errors.DataError, match="(?s)StopIteration at index 3.*rule: StopIteration ends a loop"):
        list(data.DataLoader(samples.Ending(8), 2, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_where_its_state_was_taken(workers):
    def loader():
        generator = flow.Generator().manual_seed(7)
        return data.DataLoader(samples.Numbers(20), 3, True, num_workers=workers, generator=generator)

    whole = loader()
    epochs = [[flat(b) for b in whole] for _ in range(2)]
    first = loader()
    batches = iter(first)
    given = [flat(next(batches)) for _ in range(3)]
    assert given == epochs[0][:3]
    second = loader()
    second.load_state_dict(first.state_dict())
    assert [flat(b) for b in second] == epochs[0][3:]
    assert [flat(b) for b in second] == epochs[1]


def test_a_stream_goes_on_where_its_state_was_taken():
    flow.manual_seed(2)
    loader = data.DataLoader(samples.Stream(12), 2)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [b.tolist() for b in batches]
    loader.load_state_dict(state)
    assert [b.tolist() for b in loader] == rest


def test_chance_here_does_not_move_the_programs_own():
    np.random.seed(5)
    expected = np.random.random(2)
    np.random.seed(5)
    first = np.random.random()
    list(data.DataLoader(samples.Numbers(4), 2))
    assert [first, np.random.random()] == expected.tolist()


SESSION = """
import abc, enum, math
import numpy as np
import sbpjax as flow
from sbpjax.utils.data import DataLoader, Dataset

SCALE = 10

class Color(enum.Enum):
    RED = 1

class Base(Dataset, abc.ABC):
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    @abc.abstractmethod
    def number(self, i): ...

    def __len__(self):
        return self.n

def depth(i):
    return 0 if i < 2 else 1 + depth(i // 2)  # a global that names itself

class Squares(Base):
    offset = 0.5

    def __init__(self, n):
        super().__init__(n)
        self.made = 1

    @property
    def scale(self):
        return SCALE

    @classmethod
    def shifted(cls, value):
        return value + cls.offset

    @staticmethod
    def square(i):
        return math.pow(i, 2)

    def number(self, i):
        return Squares.shifted(self.scale * self.square(i)) + depth(i)

    def __getitem__(self, i):
        return np.float32(self.number(i))

def doubled(batch):
    return 2 * np.stack(batch)

data = Squares(6)
expected = [2 * (10.0 * i * i + 0.5 + depth(i)) for i in range(6)]
for workers in (0, 2):
    for collate in (None, doubled, lambda batch: doubled(batch)):
        found = np.concatenate([np.asarray(b) for b in DataLoader(data, 2, num_workers=workers, collate_fn=collate)])
        assert found.tolist() == [e if collate else e / 2 for e in expected], found
data.color = Color.RED
try:
    list(DataLoader(data, 2, num_workers=1))
except RuntimeError as error:
    assert "enumerations" in str(error), error
    print("refused")
"""


def test_workers_take_classes_and_functions_of_a_notebook():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-"]  # from standard input: a main module in no file, as a notebook's
    done = subprocess.run(
        command, input=SESSION, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and done.stdout == "refused\n", done.stderr[-3000:]


SCRIPT = """
    import os, sys, time
    import sbpjax as flow
    from sbpjax.utils.data import DataLoader
    from tests.data.loading import samples

    if __name__ == "__main__":
        loader = DataLoader(samples.WhereAmI(10000), 1, num_workers=2)
        batches = iter(loader)
        print(*{int(next(batches)[0, 0].item()) for _ in range(8)}, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left(how, tmp_path):
    script = tmp_path / "train.py"
    listen = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background does not
    )
    script.write_text(listen + textwrap.dedent(SCRIPT))
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert pids and all(alive(pid) for pid in pids)
    process.send_signal(how)
    process.wait(20)
    process.stdout.close()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


def test_a_dataset_of_the_main_script_and_a_missing_guard(tmp_path):
    script = tmp_path / "train.py"
    guarded = """
        import sbpjax as torch
        import sbpjax.nn as nn
        import numpy as np
        from sbpjax.utils.data import Dataset, DataLoader

        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        class Net(nn.Module):
            @torch.no_grad()
            def forward(self, x):
                return x

        class Rows(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return torch.tensor([i, i])

        {guard}
            for x in DataLoader(Rows(), batch_size=2, num_workers=1):
                print(x.sum().item())
    """
    outputs = []
    for guard, aliased in (('if __name__ == "__main__":', True), ("if True:", False)):
        text = textwrap.dedent(guarded.format(guard=guard))
        if aliased:  # the workers know sbpjax by this name too
            text = text.replace("import sbpjax as torch", "import torch").replace("sbpjax", "torch")
        script.write_text(text)
        command = [sys.executable, *(["-m", "sbpjax.run", "--as", "torch"] if aliased else []), str(script)]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        outputs.append(subprocess.run(command, capture_output=True, text=True, env=environment))
    assert outputs[0].stdout.split() == ["2", "10"], outputs[0].stderr
    assert outputs[1].returncode == 1 and "if __name__ == '__main__':" in outputs[1].stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"num_workers": 1, "multiprocessing_context": "magic"}, "valid start method"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        data.DataLoader(range(4), **options)
    with pytest.raises(ValueError, match="IterableDataset: expected unspecified shuffle"):
        data.DataLoader(samples.Stream(3), shuffle=True)


class TwoArguments(Exception):
    def __init__(self, what, where):
        super().__init__(what, where)


class OnlyNamed(Exception):
    def __init__(self, *, code):
        super().__init__(f"code {code}")


class NoText(Exception):
    def __str__(self):
        raise AttributeError("x")


class AnotherText(Exception):
    def __init__(self, what, where="nowhere"):
        super().__init__(what)
        self.where = where

    def __str__(self):
        return f"at {self.where}"


class Raises(data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise self.make()


def utf8():
    return UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid")


def two():
    return TwoArguments("it broke", 7)


def named():
    return OnlyNamed(code=3)


def hidden():
    class Local(Exception):
        pass

    return Local("only here")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (two, r"(?s)seen: Caught TwoArguments in DataLoader worker process 0: \('it broke', 7\).*fix:.*Original Trace"),
        (named, r"(?s)Caught OnlyNamed in DataLoader worker process 0: code 3"),
        (NoText, "(?s)Caught NoText in DataLoader worker process 0: its text cannot be made"),
        (lambda: AnotherText("a", "b"), "(?s)Caught AnotherText in DataLoader worker process 0: at b"),
        (utf8, "(?s)Caught UnicodeDecodeError in DataLoader worker process 0: 'utf-8' codec"),
        (hidden, "(?s)Caught Local in DataLoader worker process 0.*only here"),
    ],
)
def test_exceptions_that_take_other_arguments_are_told(make, text):
    with pytest.raises(RuntimeError, match=text):
        list(data.DataLoader(Raises(make), num_workers=1))


RAISING_SCRIPT = """
from sbpjax.utils.data import DataLoader, Dataset
class Own(Exception):
    pass
class Two(Exception):
    def __init__(self, a, b): super().__init__(a, b)
class Data(Dataset):
    def __init__(self, kind, arguments): self.kind, self.arguments = kind, arguments
    def __len__(self): return 1
    def __getitem__(self, index): raise self.kind(*self.arguments)
if __name__ == "__main__":
    for kind, arguments in ((Own, ["x"]), (Two, ["x", "y"])):
        try:
            list(DataLoader(Data(kind, arguments), num_workers=1))
        except Exception as error:
            print(type(error).__name__, "Caught" in str(error))
"""


def test_exceptions_of_a_script_are_found_there(tmp_path):
    (tmp_path / "script.py").write_text(RAISING_SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["Own", "True", "WorkerError", "True"], done.stderr
