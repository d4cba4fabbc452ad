"""What fit keeps where strategy.elastic() runs it: after a change of tasks it goes on from the last step that all finished."""
import base64
import json

import berth as tf
import numpy as np
from berth import _core
from keras.src import callbacks as callbacks_module
from keras.src import utils

_NEVER = {"model", "_model", "params"}


def _plain(v):
    """A value as JSON keeps it, arrays by their bytes; raises TypeError for what is not plain."""
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    if isinstance(v, np.ndarray) and v.dtype.kind in "biuf":
        return {"array": base64.b64encode(np.ascontiguousarray(v)).decode(), "dtype": v.dtype.str, "shape": v.shape}
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, (list, tuple)):
        return [_plain(each) for each in v]
    if isinstance(v, dict) and all(isinstance(k, str) for k in v):
        return {"dict": {k: _plain(each) for k, each in v.items()}}
    raise TypeError


def _whole(v):
    """What _plain() was given."""
    if isinstance(v, list):
        return [_whole(each) for each in v]
    if not isinstance(v, dict):
        return v
    if "dict" in v:
        return {k: _whole(each) for k, each in v["dict"].items()}
    return np.frombuffer(base64.b64decode(v["array"]), np.dtype(v["dtype"])).reshape(v["shape"]).copy()


def _attributes(callback):
    """The plain attributes of a callback."""
    found = {}
    for name, value in vars(callback).items():
        if name not in _NEVER:
            try:
                found[name] = _plain(value)
            except TypeError:  # a model, a file, a function: made anew
                pass
    return found


def _text(callback):
    return json.dumps([type(callback).__name__, _attributes(callback)])


def watches_batches(callback, kind):
    """True if a callback is to be called for each batch of `kind`: train, test or predict."""
    return not all(utils.is_default(getattr(callback, f"on_{when}")) for when in (
        "batch_begin", "batch_end", f"{kind}_batch_begin", f"{kind}_batch_end"))


def _random_text():
    name, keys, *rest = np.random.get_state()
    return json.dumps([name, keys.tolist(), *rest])


class ElasticFit:
    """The state of one fit of a model. Outside of elastic() it does nothing.

    Not kept: metrics of the epoch under way that lost tasks have counted.
    """

    def __init__(self, model, batches):
        strategy = model._strategy
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self._fit = _core.ElasticFit(strategy.__berth__) if several else None
        self.on = several and self._fit.on
        self._model, self._batches = model, batches
        self._epoch = self._batch = 0  # where it goes on
        self._state = self._random = None
        batches.one_by_one |= self.on

    def begin(self, callbacks):
        """All tasks agree on the state. True: the fit ended in an earlier call of `train`, and `callbacks` have its history."""
        if not self.on:
            return False
        self._callbacks = [c for c in callbacks.callbacks if not isinstance(c, callbacks_module.ProgbarLogger)]
        model = self._model
        variables = [*model.variables, *model.metrics_variables, *getattr(model.optimizer, "variables", [])]
        unique = list({id(v): v.value for v in variables}.values())
        found, text = self._fit.begin(unique, "")
        if found != "nothing":
            self._state = json.loads(text)
            self._epoch, self._batch = self._state["epoch"], self._state["batch"]
        if found == "end":
            self._set_callbacks()
        return found == "end"

    def apply(self):
        """Sets the callbacks, which have begun, to the state; without one the state is that of the beginning."""
        if not self.on:
            return
        if self._state is None:
            self._random = _random_text()
            self._texts = [_text(c) for c in self._callbacks]
            return self._copy(0, 0)
        self._set_callbacks()
        self._model.stop_training = self._state["stopped"]
        self._random = json.dumps(self._state["random"])
        name, keys, *rest = self._state["random"]
        np.random.set_state((name, np.array(keys, "uint32"), *rest))
        if self._fit.fetched:  # the sums of another task
            self._model.reset_metrics()
        if self._batch and not self._batches.skip(self._batch, self._state["seed"]):
            self._batch = 0  # the data of the epoch begin again

    def _set_callbacks(self):
        kept = self._state["callbacks"]
        names = [type(c).__name__ for c in self._callbacks]
        if names != [name for name, _ in kept]:
            raise ValueError(f"elastic: fit has the callbacks {names}, and had {[name for name, _ in kept]} before a task came or "
                             "went; expected the same in each call of `train`")
        for callback, (_, attributes) in zip(self._callbacks, kept):
            vars(callback).update({name: _whole(v) for name, v in attributes.items()})

    def epochs(self, given):
        """The epochs of the range that are left."""
        if self._state is None:
            return given
        return range(0) if self._model.stop_training else range(self._epoch, given.stop)

    def epoch_begins(self, epoch):
        """Sets metrics to zero; of an epoch that goes on, returns the logs until here."""
        goes_on = self._batch > 0 and epoch == self._epoch
        if not goes_on:
            self._model.reset_metrics()
        if self.on:
            self._random = self._random if goes_on else _random_text()
            self._texts = [_text(c) for c in self._callbacks]
        return self._model.get_metrics_result() if goes_on else {}

    def step_ends(self, epoch, batch):
        """So many batches of the epoch are done."""
        if self.on:
            if self._fit.step_ends():
                self._texts = [_text(c) if watches_batches(c, "train") else text for c, text in zip(self._callbacks, self._texts)]
                self._copy(epoch, batch)
            self._fit.hand_over()

    def epoch_ends(self, epoch):
        """An epoch is done, with its callbacks."""
        if self.on:
            self._random = _random_text()
            self._texts = [_text(c) for c in self._callbacks]
            self._copy(epoch + 1, 0)

    def _copy(self, epoch, batch):
        self._fit.copy((epoch << 32) + batch, json.dumps({
            "epoch": epoch, "batch": batch, "stopped": bool(self._model.stop_training), "seed": self._batches.seed})[:-1] +
            f', "random": {self._random}, "callbacks": [{", ".join(self._texts)}]}}')
