"""Puts the pages of the documentation into the wheel, where error messages name them; all else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithPages(build_py):
    """Copies ``docs/**/*.md`` to ``sbpjax/docs``, which `sbpjax.errors.page` looks into."""

    def run(self) -> None:
        super().run()
        for page in [] if self.editable_mode else Path("docs").rglob("*.md"):
            target = Path(self.build_lib, "sbpjax", page)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)


setup(cmdclass={"build_py": WithPages})
