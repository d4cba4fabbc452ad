"""What keras.src.backend takes from its backend."""
import os as _os

import keras as _keras
from berth import _core
from keras.src.backend.common.name_scope import name_scope  # noqa: F401

from keras_berth.src import distribution_lib, random, tensorboard  # noqa: F401
from keras_berth.src.ops import core, image, linalg, math, nn, numpy  # noqa: F401
from keras_berth.src.ops.core import (  # noqa: F401
    IS_THREAD_SAFE, SUPPORTS_COMPLEX_DTYPES, SUPPORTS_RAGGED_TENSORS, SUPPORTS_SPARSE_TENSORS, associative_scan, cast,
    compute_output_spec, cond, convert_to_numpy, convert_to_tensor, custom_gradient, device_scope, fori_loop, is_tensor,
    map, random_seed_dtype, remat, scan, scatter, scatter_update, shape, slice, slice_update, stop_gradient, switch,
    unstack, vectorized_map, while_loop)
from keras_berth.src.rnn import bidirectional_gru, bidirectional_lstm, cudnn_ok, gru, lstm, rnn  # noqa: F401
from keras_berth.src.variable import Variable  # noqa: F401

# Lines of Keras and of this package are not the user's.
for _package in (_keras.__path__[0], _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))):
    _core._add_package_folder(_os.path.abspath(_package) + _os.sep)
