"""tf.sysconfig: what this Berth was built with, and where its library is."""
import os

from berth import _core

__all__ = ["get_build_info", "get_lib"]


def get_build_info():
    """What the build has of other makers: {"is_cuda_build", "is_rocm_build", "is_tensorrt_build": whether}."""
    from berth.test import is_built_with_cuda
    return {"is_cuda_build": is_built_with_cuda(), "is_rocm_build": False, "is_tensorrt_build": False}


def get_lib():
    """The folder of the engine's shared library."""
    return os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), "lib")
