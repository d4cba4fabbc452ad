"""Every argument of every public function of the package: it has an effect, is an error, or is listed with a reason.

An argument that the body of its function never reads is ignored. Those of CALLS are also given another value than
their default, and the result must differ or an error say why not. What the engine declares is read by the generated
routines, which name every argument of theirs (python/generate.py).
"""
import ast
import importlib
import inspect
import sys
import textwrap
import types

GRAMMAR = """
case = (function or method of a class of berth, argument)
"""

# Arguments that need not do anything, by name or by function and name, and why.
REASONS = {
    "name": "names are the engine's: by layer, scope and line",
    "parallel_iterations": "the plan runs what is ready",
    "exclusive_resource_access": "a section is always run alone",
    "back_prop": "tapes decide what is differentiated",
    "swap_memory": "placement decides where values lie",
    "jit_compile": "every plan is compiled",
    "experimental_implements": "for kernels of other run-times",
    "experimental_attributes": "for kernels of other run-times",
    "experimental_autograph_options": "there is one way to convert",
    "experimental_optional_features": "there is one way to convert",
    "recursive": "functions are converted when they are called",
    "nn.ctc_loss.unique": "a table that TensorFlow's own loss needs on TPUs",
    "buffer_size": "files are read in blocks of the engine's own size",
    "summarize": "NumPy shortens long values",
    "description": "texts beside a chart",
    "nest.assert_same_structure.expand_composites": "ragged and sparse tensors are leaves",
    "infer_shape": "shapes are known",
    "layout": "strategies and plans place and split",
    "tile_size": "there are no tiles",
    "use_locking": "an update is whole in any case",
    "alg": "there is one generator of the engine's",
    "gate_gradients": "gradients are computed together",
    "aggregation_method": "the engine chooses how it adds up",
    "graph_parents": "nothing is kept of a graph",
    "allow_fast_lookup": "results are the same",
    "assert_proper_shapes": "shapes are always checked",
    "linalg.eigh_tridiagonal.tol": "eigenvalues are exact to the dtype",
    "linalg.tridiagonal_solve.partial_pivoting": "pivots are taken in any case",
    "nn.all_candidate_sampler": "there is nothing to draw",
    "nn.compute_accidental_hits.seed": "there is nothing to draw",
    "experimental_is_anonymous": "tables are objects of Python",
    "lookup.DenseHashTable.__init__": "a dictionary of the host, which grows by itself",
    "lookup.MutableHashTable.__init__.checkpoint": "tables are not in checkpoints",
    "experimental.numpy.array.copy": "tensors do not change",
    "experimental.numpy.experimental_enable_numpy_behavior.dtype_conversion_mode": "the rules are NumPy's",
    "keras.layers.InputLayer.__init__.sparse": "a model makes sparse inputs dense",
    "ragged.RaggedTensor.with_row_splits_dtype.dtype": "row_splits are int64",
    "ragged.RaggedTensorSpec.__init__.flat_values_spec": "shape and dtype say it",
    "types.ConcreteFunction": "signatures have one form; what makes the object is internal",
    "row_splits_dtype": "row_splits are int64",
    "validate_indices": "kernels check indices",
    "a_is_sparse": "a hint, of which no result depends",
    "b_is_sparse": "a hint, of which no result depends",
    "test.TestCase.session": "there is nothing to open",
    "test.TestCase.cached_session": "there is nothing to open",
    "argsort.stable": "equal elements stay in their order in any case",
    "nn.moments.shift": "the variance is computed of differences from the mean",
    "sparse_gradient": "gradients are dense",
    "experimental_use_pfor": "the rows of a jacobian are computed one by one",
    "example_names": "messages are told apart by their numbers", "example_name": "there is one message",
    "case.strict": "predicates are evaluated in order",
    "split.num": "the sizes say it",
    "group": "effects keep the order of the program",
    "numpy_function.stateful": "calls of Python are never merged",
    "vectorized_map": "map_fn's other name",
    "data.Dataset.batch.num_parallel_calls": "the elements are the same",
    "data.Dataset.batch.deterministic": "the order is always kept",
    "data.Dataset.snapshot.compression": "files of the engine's own",
    "data.Optional.empty.element_spec": "what has no value has no spec",
    "data.Dataset.load.compression": "the folder says it",
    "data.make_csv_dataset.sloppy": "rows keep their order",
    "debugging.assert_shapes.data": "what is printed",
    "debugging.enable_check_numerics": "the error names the line, not a stack",
    "distribute.MirroredStrategy.__init__.cross_device_ops": "the engine chooses how it adds up",
    "distribute.ReplicaContext.all_gather.options": "the engine chooses how it gathers",
    "distribute.ReplicaContext.all_reduce.options": "the engine chooses how it adds up",
    "distribute.Strategy.distribute_datasets_from_function.options": "how elements travel, not which",
    "distribute.Strategy.experimental_distribute_datasets_from_function.options": "how elements travel, not which",
    "distribute.StrategyExtended.batch_reduce_to.options": "the engine chooses how it adds up",
    "distribute.StrategyExtended.reduce_to": "every device of the strategy has the result",
    "distribute.Strategy.experimental_distribute_dataset.options": "how elements travel, not which",
    "distribute.ParameterServerStrategy.distribute_datasets_from_function.options": "how elements travel, not which",
    "distribute.ParameterServerStrategy.experimental_distribute_dataset.options": "how elements travel, not which",
    "distribute.Server.__init__.start": "a server listens from join() on",
    "distribute.cluster_resolver.ClusterResolver.num_accelerators": "those of this process, the only ones it sees",
    "distribute.cluster_resolver.SimpleClusterResolver.num_accelerators": "those of this process, the only ones it sees",
    "distribute.cluster_resolver.SlurmClusterResolver.__init__": "which GPUs a task sees is Slurm's affair",
    "distribute.Strategy.run.options": "how a function is compiled for TPUs",
    "io.RaggedFeature.__init__.validate": "the engine made the rows",
    "keras.Model.compile.steps_per_execution": "a step is one plan; callbacks see every batch",
    "keras.Model.compute_loss.training": "losses are the same",
    "keras.Model.predict.verbose": "no progress is shown",
    "keras.Model.summary": "the table has one form",
    "profiler.Profile.__init__.options": "levels of other recorders",
    "profiler.ProfilerOptions.__init__": "levels of other recorders",
    "profiler.start.options": "levels of other recorders",
    "RaggedTensor.with_row_splits_dtype": "positions are int64",
    "TensorArray.__init__.colocate_with_first_write_call": "tensors are where they were computed",
    "TensorArray.__init__.tensor_array_name": "a name of TensorFlow's graph",
    "get_static_value.partial": "a value is known whole or not",
    "tuple.control_inputs": "what stands before is done",
    "raw_ops": "made from a table, each with the arguments of its op",
    "saved_model": "tags and options of TensorFlow's own format",
    "summary.create_file_writer": "when a file is written, and its name",
    "summary.experimental.summary_scope.values": "of TensorFlow's version 1",
    "summary.trace_export": "the trace is written whole",
    "train.Checkpoint.read.options": "the reading device is the host",
    "train.Checkpoint.restore.options": "the reading device is the host",
    "train.CheckpointManager.save.options": "the writing device is the host",
    "train.CheckpointOptions.__init__.experimental_io_device": "the writing device is the host",
}


# call: what is put before its last parenthesis, one argument each.
CALLS = {
    "r(5).batch(2)": "drop_remainder=True",
    "r(3).enumerate()": "start=2",
    "tf.data.Dataset.range(3)": "output_type=tf.int32",
    "r(5).window(2)": "shift=1 | stride=2 | drop_remainder=True",
    "r(9).interleave(lambda x: r(2).map(lambda y: x))": "cycle_length=1 | cycle_length=2, block_length=2",
    "r(3).snapshot(path)": "reader_func=len | shard_func=len",
    "tf.data.Dataset.sample_from_datasets([r(5), r(5).map(lambda x: -x)], seed=1)":
        "weights=[1.0, 0.0] | rerandomize_each_iteration=True",
    "r(3).padded_batch(2)": "drop_remainder=True | padding_values=3, padded_shapes=[4]",
    "tf.data.experimental.CsvDataset(csv, [tf.float32, tf.float32])":
        "compression_type='GZIP' | header=True | field_delim=';' | select_cols=[0] | exclude_cols=[0] | na_value='1'",
    "tf.data.TextLineDataset(csv)": "compression_type='GZIP'",
    "tf.data.FixedLengthRecordDataset(csv, 4)": "header_bytes=1 | footer_bytes=1 | compression_type='GZIP'",
    "tf.constant([1, 2])": "dtype=tf.int64 | shape=[2, 1]",
    "tf.convert_to_tensor([1, 2])": "dtype=tf.float32 | dtype_hint=tf.float32",
    "tf.reduce_mean(x)": "axis=0 | axis=0, keepdims=True",
    "tf.argmax(x)": "axis=1 | output_type=tf.int32",
    "tf.range(3)": "delta=2 | dtype=tf.int64",
    "tf.pad(x, [[1, 1], [0, 0]])": "mode='REFLECT' | constant_values=7",
    "tf.fill([2], 1)": "dtype=tf.float32",
    "tf.size(x)": "out_type=tf.int64",
    "tf.shape(x)": "out_type=tf.int64",
    "tf.unique([1, 1])": "out_idx=tf.int64",
    "tf.unique_with_counts([1, 1])": "out_idx=tf.int64",
    "tf.clip_by_global_norm([x], 1.0)": "use_norm=tf.constant(100.0)",
    "tf.gather(x, [1, 0])": "axis=1 | batch_dims=1",
    "tf.split(x, 2)": "axis=1",
    "tf.map_fn(lambda v: v, x)": "fn_output_signature=tf.int64 | dtype=tf.int64",
    "tf.scan(lambda a, b: a + b, x)": "reverse=True | initializer=tf.constant([9.0, 9.0])",
    "tf.foldl(lambda a, b: a - b, x)": "initializer=tf.constant([9.0, 9.0])",
    "tf.case([(True, lambda: 1), (True, lambda: 2)])": "exclusive=True | default=lambda: 5, exclusive=True",
    "tf.strings.split('a b c')": "sep='b' | maxsplit=1",
    "tf.strings.unicode_decode(b'a\\xff\\x01', 'UTF-8')": "errors='strict' | replacement_char=1 | replace_control_characters=True",
    "tf.sparse.add(sp, sp)": "threshold=5.0",
    "tf.sparse.to_dense(sp)": "default_value=7.0",
    "tf.sparse.reduce_sum(sp)": "axis=0 | keepdims=True | output_is_sparse=True",
    "tf.ragged.constant([[1], [2, 3]])": "dtype=tf.int64 | inner_shape=(1,)",
    "tf.ragged.constant([[1], [2, 3]]).to_tensor()": "default_value=9 | shape=[2, 5]",
    "fit()": "batch_size=2 | batch_size=0 | epochs=2 | validation_split=0.5 | initial_epoch=1 | class_weight={0: 2.0, 1: 2.0} | "
             "sample_weight=np.full(4, 3.0) | steps_per_epoch=5, epochs=2 | validation_data=(X, Y) | validation_batch_size=0",
    "model().evaluate(X, Y, verbose=0)": "sample_weight=np.full(4, 3.0) | return_dict=True | batch_size=0",
    "model().predict(X, verbose=0)": "batch_size=0",
    "model().train_on_batch(X, Y)": "sample_weight=np.full(4, 3.0) | class_weight={0: 3.0, 1: 3.0} | return_dict=True",
    "model().test_on_batch(X, Y)": "sample_weight=np.full(4, 3.0) | return_dict=True",
    "traces()": "reduce_retracing=True | input_signature=[tf.TensorSpec([None])]",
    "tf.keras.layers.Layer()": "activity_regularizer='l2' | dtype='float64' | trainable=False | name='n'",
}

SETUP = """
import gzip, json, os, tempfile
import numpy as np
folder = tempfile.mkdtemp()
path, csv = os.path.join(folder, "s"), os.path.join(folder, "c.csv")
open(csv, "w").write("1,2\\n3,4\\n")
r = tf.data.Dataset.range
x = tf.constant([[3.0, 2.0], [4.0, 5.0]])
sp = tf.SparseTensor([[0, 0], [1, 1]], [1.0, 4.0], [2, 2])
X, Y = np.arange(8, dtype="float32").reshape(4, 2), np.array([[0.0], [1.0], [1.0], [0.0]])

def model():
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
    made.compile(tf.keras.optimizers.SGD(0.001), "mse")
    return made

def fit(**more):
    made = model()
    return made.fit(X, Y, verbose=0, shuffle=False, **more).history, made.get_weights()

def traces(**more):
    f = tf.function(lambda v: v, **more)
    for n in (1, 2, 3):
        f(tf.ones(n))
    return f.experimental_get_tracing_count()
"""


def shown(result):
    """A result as text, that of a data set with its elements."""
    import numpy as np
    if isinstance(result, (dict, list, tuple)):
        return [shown(v) for v in (sorted(result.items()) if isinstance(result, dict) else result)]
    if hasattr(result, "values") and hasattr(result, "dtype"):
        return [type(result).__name__, result.dtype.name, str(result)]
    if hasattr(result, "element_spec") or type(result).__name__ == "Windows":
        return [str(getattr(result, "element_spec", "")), [shown(e) for e in result]]
    if hasattr(result, "trainable") and hasattr(result, "name"):
        return [result.name, result.trainable]
    return [str(getattr(result, "dtype", "")), np.asarray(result).tolist()]


def without_effect():
    """(call, argument) that gives the same as the call without it."""
    import berth
    scope = {"tf": berth}
    exec(SETUP, scope)  # noqa: S102  our own text
    wrong, count = [], 0
    for call, arguments in CALLS.items():
        plain = shown(eval(call, scope))  # noqa: S307
        for argument in arguments.split(" | "):
            count += 1
            program = f"{call[:-1]}{'' if call.endswith('()') else ', '}{argument})"
            try:
                if shown(eval(program, scope)) == plain:  # noqa: S307
                    wrong.append(program)
            except (ValueError, TypeError, NotImplementedError, berth.errors.OpError):
                pass
    return wrong, count


def excused(path, argument):
    """Whether the list has a reason for an argument, by a part of its path."""
    whole = f"{path}.{argument}".split(".")
    return argument in REASONS or any(".".join(whole[:i]) in REASONS for i in range(1, len(whole) + 1))


def public(module, seen, path):
    """(path, function) of what users may call."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("berth") and value not in seen:
                seen.add(value)
                yield from public(value, seen, f"{path}{name}.")
        elif isinstance(value, types.FunctionType) and str(value.__module__).startswith("berth"):
            yield path + name, value
        elif isinstance(value, type) and value.__module__.startswith("berth") and value not in seen:
            seen.add(value)
            for member, made in sorted(vars(value).items()):
                made = getattr(made, "__func__", made)
                if isinstance(made, types.FunctionType) and (member == "__init__" or not member.startswith("_")):
                    yield f"{path}{name}.{member}", made


def functions():
    import berth
    for name in berth._LATER:  # imported at their first use
        importlib.import_module(f"berth.{name}")
    for name in berth._ALSO:
        getattr(berth, name)
    for name in ("layers", "models", "callbacks", "saving", "datasets"):
        importlib.import_module(f"berth.keras.{name}")
    found = {}
    for path, function in public(berth, set(), ""):
        found.setdefault(function, path)
    return sorted((path, function) for function, path in found.items())


def read_names(function):
    """Names that the body of a function reads, or None where there is no text."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    made = next((n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)
    if made is None:
        return None
    body = made.body if isinstance(made.body, list) else [made.body]
    plain = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if all(isinstance(s, (ast.Raise, ast.Pass)) or (isinstance(s, ast.Return) and (
            s.value is None or getattr(s.value, "value", s) is None)) for s in plain):
        return None  # for classes that derive from this one
    return {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}


def ignored():
    """(function, argument) that nothing reads and no reason covers, and how many were looked at."""
    wrong, count = [], 0
    for path, function in functions():
        names = read_names(function)
        if names is None or "locals" in names:  # which has them all
            continue
        for argument in inspect.signature(function).parameters.values():
            if argument.name in ("self", "cls", "_") or argument.name.startswith("_"):
                continue
            count += 1
            if argument.name not in names and not excused(path, argument.name) and ".on_" not in path:
                wrong.append(f"{path}({argument.name})")
    return wrong, count


def main(args):
    wrong, count = ignored()
    same, more = without_effect()
    for line in wrong:
        print("WRONG: nothing reads", line)
    for line in same:
        print("WRONG: no effect:", line)
    wrong, count = wrong + same, count + more
    print(f"arguments: {count} cases, {len(wrong)} wrong, 0 refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(None))
