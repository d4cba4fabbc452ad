"""python -m berth SCRIPT.py [ARGS]: runs a script of TensorFlow's as it is.

For that run `import tensorflow` and `from tensorflow import keras` mean Berth.
"""
import importlib
import importlib.abc
import importlib.util
import os
import runpy
import sys
import types

import berth


class _Answer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of tensorflow and keras with the modules of Berth."""

    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        if top not in ("tensorflow", "keras"):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        own = spec.name.replace("tensorflow", "berth", 1)
        own = own.replace("keras", "berth.keras", 1) if own.startswith("keras") else own
        own = own.replace("berth.python.", "berth.").replace("berth.compat.v2", "berth")
        if own == "berth.compat":
            made = types.ModuleType(spec.name)
            made.v2 = berth
            return made
        return importlib.import_module(own)

    def exec_module(self, module):
        pass


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python -m berth SCRIPT.py [ARGS]")
    sys.meta_path.insert(0, _Answer())
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
