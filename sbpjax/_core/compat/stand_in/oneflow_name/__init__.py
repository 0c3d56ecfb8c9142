"""Folder of the stub module `oneflow`, first on the path of child processes."""
