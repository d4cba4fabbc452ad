"""Every argument of every public function of the package: it has an effect, is an error, or is listed with a reason.

An argument that the body of its function never reads is ignored. For the functions of CALLS each argument is
also given another value than its default, and the result must differ or an error say why not. What the engine
declares is read by the generated routines, which name every argument of theirs (python/generate.py).
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
    "back_prop": "tapes decide what is differentiated",
    "swap_memory": "placement decides where values lie",
    "jit_compile": "every plan is compiled",
    "experimental_implements": "for kernels of other run-times",
    "experimental_attributes": "for kernels of other run-times",
    "experimental_autograph_options": "there is one way to convert",
    "experimental_optional_features": "there is one way to convert",
    "recursive": "functions are converted when they are called",
    "buffer_size": "files are read in blocks of the engine's own size",
    "summarize": "NumPy shortens long values",
    "description": "texts beside a chart",
    "expand_composites": "ragged and sparse tensors are leaves",
    "infer_shape": "shapes are known",
    "row_splits_dtype": "row_splits are int64",
    "validate_indices": "kernels check indices",
    "case.strict": "predicates are evaluated in order",
    "split.num": "the sizes say it",
    "group": "effects keep the order of the program",
    "numpy_function.stateful": "calls of Python are never merged",
    "vectorized_map": "map_fn's other name",
    "data.Dataset.batch.num_parallel_calls": "the elements are the same",
    "data.Dataset.batch.deterministic": "the order is always kept",
    "data.Dataset.snapshot.compression": "files of the engine's own",
    "debugging.assert_shapes.data": "what is printed",
    "distribute.MirroredStrategy.__init__.cross_device_ops": "the engine chooses how it adds up",
    "distribute.MultiWorkerMirroredStrategy.__init__.communication_options": "the engine chooses how it adds up",
    "distribute.Strategy.experimental_distribute_dataset.options": "how elements travel, not which",
    "distribute.Strategy.run.options": "how a function is compiled for TPUs",
    "keras.Input.batch_size": "functional models",
    "keras.Input.kwargs": "functional models",
    "keras.Model.compile.steps_per_execution": "a step is one plan; callbacks see every batch",
    "keras.Model.compute_loss.training": "losses are the same",
    "keras.Model.predict.verbose": "no progress is shown",
    "keras.Model.summary": "the table has one form",
    "profiler.Profile.__init__.options": "levels of other recorders",
    "profiler.ProfilerOptions.__init__": "levels of other recorders",
    "profiler.start.options": "levels of other recorders",
    "saved_model": "tags and options of TensorFlow's own format",
    "summary.create_file_writer": "when a file is written, and its name",
    "summary.trace_export": "the trace is written whole",
    "train.Checkpoint.read.options": "the reading device is the host",
    "train.Checkpoint.restore.options": "the reading device is the host",
    "train.CheckpointManager.save.options": "the writing device is the host",
    "train.CheckpointOptions.__init__.experimental_io_device": "the writing device is the host",
}


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
        elif isinstance(value, types.FunctionType) and value.__module__.startswith("berth"):
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
        if names is None:
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
    for line in wrong:
        print("WRONG: nothing reads", line)
    print(f"arguments: {count} cases, {len(wrong)} wrong, 0 refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(None))
