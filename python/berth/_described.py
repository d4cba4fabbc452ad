"""Data sets whose structure an element says: the first, or where that has an error one of the next, or a trace."""
import itertools

from berth import _core

_TRIES = 16  # elements that are asked for their structure


def first_of(elements, leaves_of):
    """([the first element], the others) of an iterable that elements() makes; an error of it is raised where it is read."""
    def failed(error):
        raise error
        yield

    try:
        source = iter(elements())
        return [leaves_of(v) for v in itertools.islice(source, 1)], source
    except Exception as error:
        return [], failed(error)


def shaped(dataset, handle, forms, run, state=()):
    """The result `handle` of a transform of a data set; run(leaves) is its function, and `forms` takes the structure of results."""
    from berth._function import needs_values
    from berth.data import Dataset
    handle.element_spec()
    specs = [*((t.shape, t.dtype) for t in state), *dataset.__berth__.element_spec()]
    if forms or not specs:
        return Dataset(handle, forms[0] if forms else dataset._form)
    try:
        outputs = _core.trace_concrete(run, "data", specs).outputs()
    except Exception as error:
        if not needs_values(error):
            raise
        return dataset._same(handle)

    def begin():
        return handle.pass_().next
    return Dataset(_core.Dataset.from_generator(begin, outputs), forms[0])


def instead(dataset, run, error):
    """What run(leaves) gives for the first element of a data set that has no error, or zeros as a trace says them.

    It stands for the result of the first element, which has `error`, while the transform is described; the error is raised
    where the element is read. Where no element says a structure, it is raised at once.
    """
    from berth import zeros
    try:
        source = dataset.__berth__.pass_()
    except Exception:
        raise error from None
    for _ in range(_TRIES):
        try:
            leaves = source.next()
            if leaves is None:
                break
            return run(leaves)
        except Exception:
            continue
    try:
        outputs = _core.trace_concrete(run, "data", dataset.__berth__.element_spec()).outputs()
        return [zeros([1 if n is None else n for n in shape.as_list()], dtype) for shape, dtype in outputs]
    except Exception:
        raise error from None
