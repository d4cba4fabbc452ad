"""Which dtype a function computes in: Keras' rules, and functions made of rows of a table."""
import functools

import berth as tf
from keras.src.backend import config
from keras.src.backend.common import dtypes
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor

# JAX adds up small whole numbers in 32 bits.
WIDER = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def name_of(x):
    """The name of a tensor's dtype."""
    return x.dtype.name


def cast(x, dtype):
    """`x` in a dtype that is said by its name."""
    return x if x.dtype.name == dtype else tf.cast(x, dtype)


@functools.lru_cache(None)
def _promoted(names, floatx):
    return dtypes.result_type(*names)


def result_type(*names):
    """The dtype that Keras gives what is made of these: names, or int and float for Python's numbers."""
    return _promoted(names, config.floatx())


def is_whole(dtype):
    """True of the names of whole numbers and of bool."""
    return "int" in dtype or dtype == "bool"


# What a row of a table says of its dtype: from the name of the argument's to that of the result.
def same(dtype):
    return dtype


def floating(dtype):
    return config.floatx() if dtype == "int64" else result_type(dtype, float)


def float_of_whole(dtype):
    return config.floatx() if is_whole(dtype) else dtype


def number(dtype):
    return "int32" if dtype == "bool" else dtype


def operands(*xs, also=()):
    """The arguments as tensors of the dtype that they promote to; Python's numbers adapt."""
    xs = [x if isinstance(x, (int, float)) else convert_to_tensor(x) for x in xs]
    dtype = result_type(*[type(x) if isinstance(x, (int, float)) else x.dtype.name for x in xs], *also)
    return [convert_to_tensor(x, dtype) if isinstance(x, (int, float)) else cast(x, dtype) for x in xs]


def tensors(*xs, also=(), dtype_of=same):
    """As operands(); Python's numbers are tensors of their own dtype, and dtype_of has the last word."""
    xs = [convert_to_tensor(x) for x in xs]
    dtype = dtype_of(result_type(*[x.dtype.name for x in xs], *also))
    return [cast(x, dtype) for x in xs]


def unary(name, rule, function):
    """A function of one tensor, which is computed in the dtype of `rule`."""
    def call(x):
        x = convert_to_tensor(x)
        return function(cast(x, rule(x.dtype.name)))
    return _named(call, name)


def binary(name, rule, function, on_bool=None):
    """A function of two tensors, which are promoted by `rule`; bools have a function of their own."""
    def call(x1, x2):
        x1, x2 = rule(x1, x2)
        return (on_bool if on_bool and x1.dtype.name == "bool" else function)(x1, x2)
    return _named(call, name)


def bitwise(name, function, on_bool=None):
    """A function of the bits of two tensors."""
    both = binary(name, operands, function, on_bool)

    def call(x, y):
        return both(x, y)
    return _named(call, name)


def _named(call, name):
    call.__name__ = call.__qualname__ = name
    return call


def define(into, maker, rows):
    """Puts the functions of a table into a module."""
    into.update({name: maker(name, *row) for name, row in rows.items()})
