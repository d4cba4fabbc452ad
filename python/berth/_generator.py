"""tf.random.Generator: random numbers from a state of their own."""
import enum

from berth import _core
from berth._core import Variable
from berth._tensor import as_dtype, convert_to_tensor, float32, int32, int64, uint64, say_missing as _say_missing

_random = _core.ops.random


class _Held:
    """The state of a generator that lives within one call."""

    def __init__(self, value):
        self.value = value

    def assign(self, value):
        self.value = value

    def assign_add(self, by):
        self.value = self.value + convert_to_tensor(by, int64)

    def __getattr__(self, name):
        return getattr(self.value, name)

    def __getitem__(self, key):
        return self.value[key]


class Algorithm(enum.Enum):
    """Accepted as TensorFlow does: Berth has one generator."""
    PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3


def _check(alg):
    """ValueError of what is not an algorithm of TensorFlow's."""
    names = {a.name.lower() for a in Algorithm}
    if not (alg is None or isinstance(alg, (int, Algorithm)) or str(alg) in names):
        raise ValueError(f"Generator: alg is {alg!r}; expected one of {sorted(names)}")


def create_rng_state(seed, alg=None):
    """The state of a Generator with a seed that has drawn nothing, int64 [2]: for Generator.from_state()."""
    _check(alg)
    return convert_to_tensor([0, int(seed)], int64)


class Generator:
    """Numbers that follow from a seed and how many calls there were before (tf.random.Generator).

    In a traced function each run draws new numbers, which follow from the seed as well, but not from
    `state`. They are not the numbers of TensorFlow.
    """

    __getattr__ = _say_missing

    def __init__(self, copy_from=None, state=None, alg=None):
        _check(alg)
        given = [0, 0] if state is None else [int(n) for n in convert_to_tensor(state).numpy().ravel()][:2]
        if copy_from is not None:
            given = copy_from.state.numpy().tolist()
        start = convert_to_tensor((given + [0, 0])[:2], int64)
        try:
            self._state = Variable(start, trainable=False, name="StateVar")
        except _core.InvalidArgumentError:  # inside strategy.run(), where no variables are made
            self._state = _Held(start)
        self._seed = given[1]

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator whose numbers follow from a whole number."""
        return cls(state=[0, int(seed)], alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator with a seed of the operating system's."""
        import secrets
        return cls.from_seed(secrets.randbits(62))

    @classmethod
    def from_state(cls, state, alg=None):
        """A generator that goes on from a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key, counter, alg=None):
        """A generator with a seed, the key, that has drawn `counter` times."""
        return cls(state=[int(convert_to_tensor(counter).numpy().ravel()[0]), int(key)])

    state = property(lambda self: self._state)
    key = property(lambda self: convert_to_tensor(self._seed, int64))
    algorithm = property(lambda self: "berth")

    def reset(self, state):
        """Goes on from a state."""
        self._state.assign(convert_to_tensor(state, int64))
        self._seed = int(self._state.numpy()[1])

    def reset_from_seed(self, seed):
        """Begins anew with a seed."""
        self.reset([0, int(seed)])

    def skip(self, delta):
        """As if `delta` more calls had been made."""
        self._state.assign_add([int(delta), 0])

    def _drawn(self, name, shape, *args, **kwargs):
        if _core.traces_loop():
            return getattr(_random, name)(shape, *args, seed=self._seed, **kwargs)
        count, key = self._state.numpy().tolist()
        self.skip(1)
        return getattr(_random, "stateless_" + name)(shape, [key, count], *args, **kwargs)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=float32, name=None):
        """Numbers of a normal distribution, a tensor of `shape`."""
        return _core.ops.math.cast(self._drawn("normal", shape), as_dtype(dtype)) * stddev + mean

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype=float32, name=None):
        """Numbers of a normal distribution, at most two standard deviations from the mean."""
        return _core.ops.math.cast(self._drawn("truncated_normal", shape), as_dtype(dtype)) * stddev + mean

    def uniform(self, shape, minval=0, maxval=None, dtype=float32, name=None):
        """Numbers from minval to below maxval, which whole numbers need and which is 1 for others."""
        dtype = as_dtype(dtype)
        if minval is None and maxval is None and dtype.is_integer:
            return self.uniform_full_int(shape, dtype)
        if maxval is None and dtype.is_integer:
            raise ValueError("Generator.uniform: whole numbers need maxval")
        return self._drawn("uniform", shape, minval=minval, maxval=1 if maxval is None else maxval, dtype=dtype)

    def uniform_full_int(self, shape, dtype=uint64, name=None):
        """Whole numbers of the dtype, each equally likely."""
        from berth.random import _all_whole
        return _all_whole(lambda low, high: self._drawn("uniform", shape, minval=low, maxval=high, dtype=int64), as_dtype(dtype))

    def binomial(self, shape, counts, probs, dtype=int32, name=None):
        """How many of `counts` trials succeed, each with its probability of `probs`, a tensor of `shape`."""
        return _core.ops.math.cast(self._drawn("binomial", shape, counts=counts, probs=probs), as_dtype(dtype))

    def make_seeds(self, count=1):
        """Seeds for stateless ops, int64 [2, count]."""
        return self.uniform([2, count], 0, 2 ** 31 - 1, int64)

    def split(self, count=1):
        """`count` generators whose numbers have nothing to do with each other's."""
        seeds = self.make_seeds(count).numpy()
        return [Generator.from_seed(int(a) << 31 | int(b)) for a, b in seeds.T]


_global = []


def get_global_generator():
    """The generator that belongs to the program."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator):
    """Puts another in its place."""
    _global[:] = [generator]
