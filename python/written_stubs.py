"""The stubs of what is written by hand: read from the sources of the package, which are not imported."""
import ast
import os

# What no source says of classes whose names they import from the engine.
_INIT = "def __init__(self, *args: Any, **kwargs: Any) -> None: ..."
OF_ENGINE = {
    "DType": None,
    "LogicalDevice": ["name: str", "device_type: str", "simulated: bool"],
    "LogicalDeviceConfiguration": [_INIT, "shared: bool", "memory_limit: Any", "cores: Any"],
    "PhysicalDevice": ["name: str", "device_type: str"]}


def _doc(node, indent):
    text = ast.get_docstring(node)
    if not text:
        return ""
    text = text.replace("\\", "\\\\").replace('"""', "'''").replace("\n", "\n" + indent)
    return f'{indent}"""{text}{" " if text.endswith(chr(34)) else ""}"""\n'


def _arguments(args):
    """The arguments of a definition, their defaults as `...`."""
    bare = ast.arguments(
        posonlyargs=args.posonlyargs, args=args.args, vararg=args.vararg, kwonlyargs=args.kwonlyargs,
        kw_defaults=[d and ast.Constant(...) for d in args.kw_defaults], kwarg=args.kwarg,
        defaults=[ast.Constant(...) for _ in args.defaults])
    return ast.unparse(bare)


def _function(node, indent=""):
    marks = "".join(f"{indent}@{ast.unparse(d)}\n" for d in node.decorator_list
                    if isinstance(d, ast.Name) and d.id in ("property", "staticmethod", "classmethod"))
    doc = _doc(node, indent + "    ")
    return f"{marks}{indent}def {node.name}({_arguments(node.args)}) -> Any:" + (f"\n{doc}" if doc else " ...\n")


def _class(node):
    bases = [ast.unparse(b) for b in node.bases if isinstance(b, ast.Name)]
    lines = _doc(node, "    ")
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and (item.name == "__init__" or not item.name.startswith("_")):
            lines += _function(item, "    ")
        for name in _targets(item):
            lines += f"    {name}: Any\n"
    own = f"({', '.join(bases)})" if bases and all(b[0] != "_" for b in bases) else ""
    return f"class {node.name}{own}:\n{lines}    def __getattr__(self, name: str) -> Any: ...\n"


def _targets(node):
    """The public names that an assignment makes."""
    if not isinstance(node, ast.Assign):
        return []
    names = [n for t in node.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [n.id for n in names if isinstance(n, ast.Name) and not n.id.startswith("_")]


def _space(name, call, known, late):
    """A namespace: a class with the names that it is called with, and those that it gets when they are used."""
    lines = "".join(f"    from berth.{module} import {n} as {n}\n" for module, names in late.items() for n in names.split())
    for word in call.keywords:
        if word.arg is None:
            lines += "".join(f"    {k} = {k}\n" for k in sorted(known) if not k.startswith("_"))
        elif isinstance(word.value, ast.Name) and word.value.id in known:
            lines += f"    {word.arg} = {word.value.id}\n"
        else:
            lines += f"    {word.arg}: Any\n"
    return f"class {name}:\n{lines or '    ...'}\n"


def stub(path, wanted=None):
    """The lines of a module: of its public names, or of the wanted ones."""
    tree = ast.parse(open(path).read())
    everything = next((ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign)
                       and getattr(n.targets[0], "id", "") == "__all__" and isinstance(n.value, ast.List)), None)
    out, known = "", set()
    spaces = {w.value.id for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(("SimpleNamespace", "_Names"))
              for w in n.keywords if isinstance(w.value, ast.Name)}

    late = {n.value.func.value.id: ast.literal_eval(n.value.args[0]) for n in tree.body
            if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Attribute)
            and n.value.func.attr == "_later" and isinstance(n.value.func.value, ast.Name)}

    def shows(name):
        return name in wanted if wanted is not None else not name.startswith("_") and (
            everything is None or name in everything)

    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            known.add(node.name)
            if shows(node.name) or (wanted is None and node.name in spaces):
                out += _function(node) if isinstance(node, ast.FunctionDef) else _class(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("berth"):
            for alias in node.names:
                name = alias.asname or alias.name
                error = alias.name.endswith("Error")
                if shows(name) and (alias.name in OF_ENGINE or error or node.module != "berth._core"):
                    known.add(name)
                    source = os.path.join(os.path.dirname(path), node.module.split(".")[-1] + ".py")
                    if error:
                        out += ERROR if name == "OpError" else f"class {name}(OpError): ...\n"
                    elif alias.name in OF_ENGINE:
                        members = OF_ENGINE[alias.name]
                        out += f"from berth import {alias.name} as {name}\n" if members is None else (
                            f"class {name}:\n" + "".join(f"    {m}\n" for m in members)
                            + "    def __getattr__(self, name: str) -> Any: ...\n")
                    elif os.path.exists(source):
                        out += stub(source, {alias.name})
        for name in _targets(node):
            if shows(name) or name in (wanted or ()):
                call = node.value
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("SimpleNamespace", "_Names")):
                    out += _space(name, call, known, late.get(name, {}))
                else:
                    out += f"{name}: Any\n"
    return out


def raw_ops(path):
    """A function for each op that a source lists."""
    with open(path, encoding="utf-8") as file:
        words = file.read().partition('_OPS = """')[2].partition('"""')[0].split()
    return "".join(f"def {word.partition('(')[0]}(*, name: Any = ..., **arguments: Any) -> Any: ...\n" for word in words)


ERROR = """class OpError(Exception):
    message: str
    node_def: Any
    op: Any
    error_code: int
    experimental_payloads: Any
    def __init__(self, *args: Any, node_def: Any = ..., op: Any = ..., message: Any = ..., error_code: Any = ...) -> None: ...
"""


def later(berth, package):
    """Names that modules get of others when they are used first: {module: [(source, names)]}."""
    calls = []
    for node in ast.walk(ast.parse(open(os.path.join(berth, package, "__init__.py")).read())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_later" and isinstance(node.args[1], ast.Dict):
            calls.append((f"{package}.{ast.unparse(node.args[0])}", ast.literal_eval(node.args[1])))
    if not package:
        table = ast.parse(open(os.path.join(berth, "_late_names.py")).read()).body[-1].value
        calls += ast.literal_eval(table).items()
    return {path: [(source.replace(".", os.sep) + ".py", set(names.split())) for source, names in sources.items()]
            for path, sources in calls}


def package(path):
    """The lines of the package itself: of what it imports from its hidden modules."""
    out = ""
    for node in ast.parse(open(path).read()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_ALSO":
            for name, value in zip(node.value.keys, node.value.values):
                if name is not None:
                    module, _, source = ast.literal_eval(value).rpartition(".")
                    out += f"from berth.{module} import {source} as {ast.literal_eval(name)}\n"
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("berth._") \
                or node.module in ("berth._core", "berth._late_names", "berth._modules", "berth._classes"):
            continue
        source = os.path.join(os.path.dirname(path), node.module.split(".")[1] + ".py")
        names = {a.name for a in node.names if not a.name.startswith("_") and not a.asname}
        out += stub(source, None if names == {"*"} else names)
    return out


def add_late(folder, paths):
    """Adds names that modules make when they are imported, a dotted path each, to the stubs in a folder."""
    trees = {}
    for path in paths:
        parts = path.split(".")
        at = next(n for n in range(len(parts) - 1, -1, -1) if _stub_of(folder, parts[:n]))
        tree = trees.setdefault(_stub_of(folder, parts[:at]), {})
        for part in parts[at:]:
            tree = tree.setdefault(part, {})
    for file, tree in trees.items():
        spaces = {name for name, inner in tree.items() if inner}
        lines = [line for line in open(file) if line.partition(": Any")[0] not in spaces]
        with open(file, "w") as out:
            out.writelines(lines + list(_lines_of(tree, "")))


def _stub_of(folder, parts):
    """The file with a module's stub, or None."""
    path = os.path.join(folder, *parts)
    found = [f for f in (path + ".pyi", os.path.join(path, "__init__.pyi")) if os.path.exists(f)]
    return found[0] if found else None


def _lines_of(tree, indent):
    for name, inner in sorted(tree.items()):
        yield f"{indent}class {name}:\n" if inner else f"{indent}{name}: Any\n"
        yield from _lines_of(inner, indent + "    ")
