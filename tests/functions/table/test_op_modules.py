"""Rows name functions of modules that are imported at first use, and editors see the same modules."""

import ast
import subprocess
import sys
from pathlib import Path

from sbpjax._core.functions.table import op_modules, table
from sbpjax._core.functions.table.op_modules import LazyModule


def test_editors_see_the_modules_that_rows_name():
    tree = ast.parse(Path(op_modules.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: f"{node.module}.{alias.name}" for node in block.body for alias in node.names}
    lazy = {name: value for name, value in vars(op_modules).items() if isinstance(value, LazyModule)}
    assert seen == {name: f"sbpjax._core.ops.{module.path}" for name, module in lazy.items()}


def test_every_module_has_rows():
    paths = {row.home.rpartition(".")[0] for row in table.ROWS if not (row.written or row.call)}
    assert paths == {value.path for value in vars(op_modules).values() if isinstance(value, LazyModule)}


def test_import_leaves_modules_to_their_first_use():
    code = "import sys, sbpjax; print('sbpjax._core.ops.signals.fft' in sys.modules)"
    code += "; sbpjax.fft.fftshift; print('sbpjax._core.ops.signals.fft' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["False", "True"]
