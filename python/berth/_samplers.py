"""Candidate samplers and the losses that use them: tf.nn.sampled_softmax_loss, tf.nn.nce_loss."""
import collections

from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, float32, int32, int64

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")
_SAMPLED = "sampled_candidates true_expected_count sampled_expected_count"
_learned = {}  # counts of learned_unigram_candidate_sampler, by range and seed


def _tuple(name):
    return collections.namedtuple(name, _SAMPLED)


def _check(what, true_classes, num_true, num_sampled, unique, range_max):
    true = convert_to_tensor(true_classes)
    if len(true.shape) != 2 or true.shape[1] != num_true:
        raise _core.InvalidArgumentError(f"{what}: true_classes is {true.shape}; expected [batch, num_true] with num_true "
                                         f"{num_true}")
    if num_sampled < 1 or range_max < 1 or (unique and num_sampled > range_max):
        raise _core.InvalidArgumentError(f"{what}: num_sampled is {num_sampled}, range_max {range_max}; expected at least 1, and "
                                         "of unique samples at most range_max")
    return true


def _draws(shape, seed):
    """Whole random numbers of the engine's generator, from which a sampler's own follow."""
    given = {} if seed is None else {"seed": int(seed)}
    return _ops.random.uniform(shape, 0, 2**31 - 1, int32, **given)


def _by_weights(weights, num_sampled, unique, seed):
    """num_sampled of the numbers 0, 1, ... by their weights [n] (float64), and how many draws it took."""
    uniform = (_m.cast(_draws([num_sampled], seed), _core.float64) + 0.5) / float(2**31 - 1)
    total = _m.cumsum(weights)
    if not unique:
        at = _ops.searchsorted(total / total[-1:], uniform, side="right")
        return _m.minimum(_m.cast(at, int64), weights.shape[0] - 1), None
    # Draws again until there are enough; each number counts once.
    share = total.numpy() / float(total[-1])
    rng = _np.random.Generator(_np.random.Philox(int(_draws([], seed))))
    found, tries = {}, 0
    while len(found) < num_sampled:
        tries += 1
        if tries > 50 * num_sampled + 100000:
            raise _core.InvalidArgumentError(f"candidate sampler: {len(found)} of {num_sampled} different samples after {tries} "
                                             "draws; expected fewer unique samples, or weights that are less uneven")
        found.setdefault(min(int(_np.searchsorted(share, rng.random(), side="right")), len(share) - 1))
    return convert_to_tensor(_np.fromiter(found, "int64")), tries


def _expected(probability, num_sampled, tries):
    p = _m.cast(probability, float32)
    return p * num_sampled if tries is None else -_m.expm1(_m.log1p(-p) * float(tries))


def _sample(what, true, weights, num_sampled, unique, seed):
    sampled, tries = _by_weights(weights, num_sampled, unique, seed)
    p = weights / _m.reduce_sum(weights)
    counts = [_expected(_ops.gather(p, _m.cast(at, int64)), num_sampled, tries) for at in (true, sampled)]
    return _tuple(what)(sampled, *counts)


def log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """Samples of classes in the order of how often they come.

    Class c has the probability log((c + 2) / (c + 1)) / log(range_max + 1).
    """
    true = _check("log_uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max)
    n = _m.cast(_ops.range(0, range_max, 1, int64), _core.float64)
    return _sample("LogUniformCandidateSampler", true, _m.log1p(1.0 / (n + 1.0)), num_sampled, unique, seed)


def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """Samples of classes that are equally probable: (samples, how often the true classes are expected, and the samples)."""
    true = _check("uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max)
    return _sample("UniformCandidateSampler", true, _ops.ones([range_max], _core.float64), num_sampled, unique, seed)


def learned_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """Samples by how often true_classes were seen in earlier calls with the same range_max and seed, plus 1."""
    true = _check("learned_unigram_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max)
    places = true.numpy().ravel()
    counts = _learned.setdefault((range_max, seed), _np.ones(range_max))
    out = _sample("LearnedUnigramCandidateSampler", true, convert_to_tensor(counts.copy()), num_sampled, unique, seed)
    _np.add.at(counts, places, 1)
    return out


def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, vocab_file="", distortion=1.0,
                                    num_reserved_ids=0, num_shards=1, shard=0, unigrams=(), seed=None, name=None):
    """Samples by weights: of `unigrams`, or the last column of vocab_file, to the power `distortion`.

    num_reserved_ids without a weight come before them.
    """
    what = "fixed_unigram_candidate_sampler"
    true = _check(what, true_classes, num_true, num_sampled, unique, range_max)
    if bool(vocab_file) == bool(len(unigrams)):
        raise ValueError(f"{what}: vocab_file is {vocab_file!r}, unigrams are {list(unigrams)[:4]}; expected one of the two")
    if vocab_file:
        with open(vocab_file, encoding="utf-8") as file:
            unigrams = [float(line.rpartition(",")[2]) for line in file if line.strip()]
    weights = _np.concatenate([_np.zeros(num_reserved_ids), _np.asarray(unigrams, "float64") ** distortion])
    if len(weights) != range_max:
        raise _core.InvalidArgumentError(f"{what}: there are {len(weights)} weights with those of num_reserved_ids; expected "
                                         f"range_max, {range_max}")
    weights[_np.arange(len(weights)) % num_shards != shard] = 0
    return _sample("FixedUnigramCandidateSampler", true, convert_to_tensor(weights), num_sampled, unique, seed)


def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    """All classes from 0 to num_sampled - 1, each of which is expected once."""
    true = _check("all_candidate_sampler", true_classes, num_true, num_sampled, False, num_sampled)
    ones = _ops.ones([num_sampled], float32)
    return _tuple("AllCandidateSampler")(_ops.range(0, num_sampled, 1, int64), _ops.ones(true.shape, float32), ones)


def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    """Where samples are true classes: (rows, places among the samples, weights, which are the least float32)."""
    true, sampled = convert_to_tensor(true_classes), convert_to_tensor(sampled_candidates)
    if len(true.shape) != 2 or true.shape[1] != num_true:
        raise _core.InvalidArgumentError(f"compute_accidental_hits: true_classes is {true.shape}; expected [batch, {num_true}]")
    at = _ops.where(_hits(true, sampled))
    rows, places = _m.cast(at[:, 0], int32), at[:, 2]
    return rows, places, _ops.fill(rows.shape, float32.min, float32)


def _hits(true, sampled):
    return _m.equal(_ops.expand_dims(_m.cast(true, int64), 2), _ops.reshape(_m.cast(sampled, int64), [1, 1, -1]))


def _logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove, seed):
    """(logits, labels) [batch, num_true + num_sampled] of the true classes and of samples."""
    from berth import concat
    if isinstance(weights, (list, tuple)):
        weights = concat([convert_to_tensor(w) for w in weights], 0)  # shards, one after the other
    labels, inputs = _m.cast(convert_to_tensor(labels), int64), convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_count, count = (_ops.stop_gradient(convert_to_tensor(v)) for v in sampled_values)
    sampled = _m.cast(sampled, int64)
    true_w, true_b = (_m.cast(_ops.gather(v, labels), inputs.dtype) for v in (weights, biases))
    some_w, some_b = (_m.cast(_ops.gather(v, sampled), inputs.dtype) for v in (weights, biases))
    true = _m.reduce_sum(_ops.expand_dims(inputs, 1) * true_w, 2) + true_b
    some = _ops.matmul(inputs, some_w, transpose_b=True) + some_b
    if remove:
        hit = _m.reduce_any(_hits(labels, sampled), 1)
        some = some + _m.cast(hit, inputs.dtype) * float(inputs.dtype.min if inputs.dtype.size < 4 else float32.min)
    true, some = true - _m.log(_m.cast(true_count, inputs.dtype)), some - _m.log(_m.cast(count, inputs.dtype))
    return _ops.concat([true, some], 1), _ops.concat([_ops.ones_like(true) / num_true, _ops.zeros_like(some)], 1)


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
                         remove_accidental_hits=True, seed=None, name="sampled_softmax_loss"):
    """The cross-entropy of softmax over the true classes and samples of the others: [batch]."""
    logits, wanted = _logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
                             remove_accidental_hits, seed)
    return _ops.nn.softmax_cross_entropy_with_logits(_ops.stop_gradient(wanted), logits)


def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
             remove_accidental_hits=False, name="nce_loss"):
    """The logistic loss of telling the true classes from samples: [batch]."""
    logits, wanted = _logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
                             remove_accidental_hits, None)
    return _m.reduce_sum(_ops.nn.sigmoid_cross_entropy_with_logits(wanted, logits), 1)
