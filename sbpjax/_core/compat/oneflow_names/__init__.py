"""Modules that answer where OneFlow has a name and sbpjax, by itself, has no use for one."""
