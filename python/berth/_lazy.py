"""Modules that are imported when they are used first, so that `import berth` is short, and those within others."""
import importlib
import types


class Lazy:
    """Stands for a module until then."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        value = getattr(importlib.import_module(self._name), name)
        self.__dict__[name] = value
        return value


class Names(types.SimpleNamespace):
    """What stands under a path, such as tf.data.experimental; the error of another name says if it is planned.

    _late: what _later() takes.
    """

    def __init__(self, path, _late=None, **names):
        super().__init__(**names)
        self.__dict__.update(_path=path, _late={})
        self._later(_late or {})

    def _later(self, sources):
        """Adds names of modules that are imported when one is used first: {module: "NAME NAME"}."""
        for module, names in sources.items():
            self._late.update(dict.fromkeys(names.split(), f"berth.{module}"))

    def __getattr__(self, name):
        if name in self.__dict__.get("_late", ()):
            value = getattr(importlib.import_module(self._late[name]), name)
            setattr(self, name, value)
            return value
        if name.startswith("_"):
            raise AttributeError(name)
        from berth._tensor import unknown_name
        raise AttributeError(unknown_name(self._path, name, {**vars(self), **self._late}))

    def __dir__(self):
        return sorted({*vars(self), *self._late})
