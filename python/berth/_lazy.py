"""Modules that are imported when they are used first: `import berth` is short."""
import importlib


class Lazy:
    """Stands for a module until then."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        value = getattr(importlib.import_module(self._name), name)
        self.__dict__[name] = value
        return value
