"""Points of Sobol's sequence (tf.math.sobol_sample), made on the host."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import as_dtype, convert_to_tensor, float32, float64

_np = Lazy("numpy")
# The first direction numbers of each dimension after the first, by Joe and Kuo (2008): as many as the degree of its polynomial.
_FIRST = """1 1,3 1,3,1 1,1,1 1,1,3,3 1,3,5,13 1,1,5,5,17 1,1,5,5,5 1,1,7,11,19 1,1,5,1,1 1,1,1,3,11 1,3,5,5,31 1,3,3,9,7,49
1,1,1,15,21,21 1,3,1,13,27,49 1,1,1,15,7,5 1,3,1,15,13,25 1,1,5,5,19,61 1,3,7,11,23,15,103 1,3,7,13,13,15,69 1,1,3,13,7,35,63
1,3,5,9,1,25,53 1,3,1,13,9,35,107 1,3,1,5,27,61,31 1,1,5,11,19,41,61 1,3,5,3,3,13,69 1,1,7,13,1,19,1 1,3,7,5,13,19,59
1,1,3,9,25,29,41 1,3,5,13,23,1,55 1,3,7,3,13,59,17 1,3,1,3,5,53,69 1,1,5,5,23,33,13 1,1,7,7,1,61,123 1,1,7,9,13,61,49
1,3,3,5,3,55,33 1,3,1,15,31,13,49,245 1,3,5,15,31,59,63,97 1,3,1,11,11,11,77,249 1,3,1,11,27,43,71,9 1,1,7,15,21,11,81,45
1,3,7,3,25,31,65,79 1,3,1,1,19,11,3,205 1,1,5,9,19,21,29,157 1,3,7,11,1,33,89,185 1,3,3,3,15,9,79,71 1,3,7,11,15,39,119,27
1,1,3,1,11,31,97,225 1,1,1,3,23,43,57,177 1,3,7,7,17,17,37,71 1,3,1,5,27,63,123,213 1,1,3,5,11,43,53,133""".split()
_BITS = 32


def _polynomials():
    """The primitive polynomials over two elements, as bits, by degree and then by size: (degree, polynomial)."""
    for degree in range(1, 9):
        for p in range((1 << degree) + 1, 2 << degree, 2):
            power, order = 2, 1
            power = power ^ p if power >> degree else power
            while power != 1:
                power <<= 1
                power = power ^ p if power >> degree else power
                order += 1
            if order == (1 << degree) - 1 or degree == 1:
                yield degree, p


def _directions(dim):
    """[dim, 32] numbers of 32 bits, of which points are sums without carry."""
    rows = [[1] * _BITS]
    for (degree, p), first in zip(_polynomials(), _FIRST[:dim - 1]):
        m = [int(v) for v in first.split(",")]
        for k in range(degree, _BITS):
            new = m[k - degree] ^ m[k - degree] << degree
            for i in range(1, degree):
                new ^= (m[k - i] << i) * (p >> (degree - i) & 1)
            m.append(new)
        rows.append(m)
    return _np.asarray(rows, "uint64") << (_BITS - 1 - _np.arange(_BITS)).astype("uint64")


def sobol_sample(dim, num_results, skip=0, dtype=float32, name=None):
    """num_results points [num_results, dim] that fill the unit cube evenly, from that after the first `skip`; dim at most 53."""
    dim, count, skip, dtype = int(dim), int(num_results), int(skip), as_dtype(dtype)
    if not 1 <= dim <= len(_FIRST) + 1 or count < 0 or skip < 0 or dtype not in (float32, float64):
        raise _core.InvalidArgumentError(f"sobol_sample: dim is {dim}, num_results {count}, skip {skip}, dtype {dtype.name}; "
                                         f"expected dim from 1 to {len(_FIRST) + 1}, numbers not below 0, float32 or float64")
    n = _np.arange(skip + 1, skip + 1 + count, dtype="uint64")
    gray = n ^ n >> _np.uint64(1)
    out = _np.zeros([count, dim], "uint64")
    for k, column in enumerate(_directions(dim).T):
        out ^= _np.where((gray >> _np.uint64(k) & _np.uint64(1))[:, None] == 1, column, _np.uint64(0))
    return convert_to_tensor((out / 2.0**_BITS).astype(dtype.as_numpy_dtype))
