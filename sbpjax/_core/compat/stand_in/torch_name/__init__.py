"""The folder that is put on the path."""
