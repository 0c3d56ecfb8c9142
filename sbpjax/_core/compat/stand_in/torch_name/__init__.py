"""Folder of the stub module `torch`, first on the path of child processes."""
