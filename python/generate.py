#!/usr/bin/env python3
"""Writes the bindings of functions and layers from the public headers.

    generate.py INCLUDE_DIR SIGNATURES OUT_DIR

Reads the declarations of HEADERS, and SIGNATURES (names of TensorFlow with the names of their
arguments), and writes bind_<n>.cc: for each function a routine that takes its arguments apart, and
a table. Fields of options become named arguments. What has an argument or a result of a type that
Python does not know is left out and listed in left_out.txt. There is no second list of ops: what a
header declares, Python has.
"""
import keyword
import os
import re
import sys

# Header of include/berth -> the module of berth that each C++ namespace becomes.
HEADERS = """ops/array.h ops/indexing.h ops/math.h ops/aliases.h ops/bitwise.h ops/clip.h ops/contract.h
ops/conv.h ops/conv3d.h ops/adaptive.h ops/ctc.h ops/factor.h ops/linalg.h ops/nn.h ops/random.h
ops/signal.h strings.h image.h image_boxes.h io.h
keras/activations.h keras/losses.h keras/metrics.h keras/initializers.h keras/regularizers.h
keras/constraints.h keras/optimizers.h keras/schedules.h keras/layers.h keras/core_layers.h
keras/element_layers.h keras/image_layers.h keras/volume_layers.h keras/sequence_layers.h
keras/recurrent_layers.h keras/conv_recurrent_layers.h keras/attention_layers.h
keras/augmentation_layers.h keras/applications.h keras/utils.h keras/callbacks.h
keras/checkpoint_callbacks.h""".split()

VALUES = {"Tensor", "Tensors", "Shape", "DType", "std::string", "double", "float", "bool", "int",
          "int64_t", "std::vector<int64_t>", "std::vector<int>", "std::vector<double>",
          "std::vector<std::string>", "std::optional<int64_t>", "std::optional<double>",
          "std::optional<bool>", "std::optional<DType>", "std::optional<std::vector<int64_t>>",
          "Axes", "math::Axes", "Variable", "std::vector<Variable>", "StatelessSeed",
          "Initializer", "Regularizer", "Constraint", "Activation", "OwnPolicy", "Optimizer",
          "LearningRateSchedule", "Layer", "Loss", "Metric", "DotAxes", "Size", "Size2D", "Size3D",
          "Margin", "Margins2D", "Margins3D", "Factor", "std::optional<Factor>",
          "std::string_view", "TensordotAxes", "KerasTensors", "NormOrder", "LearningRate",
          "UpdateFreq", "ProfileBatch"}
RESULTS = {"Tensor", "Tensors", "bool", "int64_t", "double", "void", "Loss", "Metric", "Initializer",
           "Regularizer", "Constraint", "Optimizer", "LearningRateSchedule", "Shape", "Model",
           "std::pair<Tensor, Tensor>", "std::pair<Tensors, Tensor>", "std::string", "KerasTensor", "Callback"}
# Python's words for those of the headers.
WORDS = [(r"\bThrows (\w+::)+(\w+?)(Error)?\b", r"Raises \2Error"), (r"(\w+::)*errors::(\w+?)(Error)?\b", r"\2Error"),
         (r"\b(?:std|berth|random|keras|data|io)::(?=\w)", ""), (r"\bnullopt\b", "None"), (r"\bnullptr\b", "None"),
         (r"\{\.(\w+) = ", r"(\1="), (r"(\w)\{(-?[\d., -]+)\}", r"\1[\2]"), (r"\(\{([^{}]*)\}\)", r"((\1))"),
         (r"\{([\w\[\]. ]+(?:, [\w\[\]. ]+)+)\}", r"[\1]"), (r"\bk([A-Z])(\w+)", lambda m: (m.group(1) + m.group(2)).upper()),
         (r"\((\w+)\.h\)", r"(\1)"), (r" \(tf\.[\w.]+(, tf\.[\w.]+)*\)", "")]
# Classes whose constructors are functions that return the handle.
HANDLES = {"Layer": "Layer", "keras::Layer": "Layer", "RecurrentLayer": "Layer",
           "Optimizer": "Optimizer"}


def python_words(doc):
    """The comment of a declaration as Python says it."""
    for pattern, to in WORDS:
        doc = re.sub(pattern, to, doc)
    return doc


def python_value(text):
    """A default of C++ as a literal of Python; "..." where it has none."""
    known = {"{}": "None", "std::nullopt": "None", "nullptr": "None", "true": "True", "false": "False"}
    if text in known:
        return known[text]
    if re.fullmatch(r'-?\d+(\.\d*)?(e-?\d+)?|"[^"]*"', text):
        return text
    items = re.fullmatch(r"\{(-?[\d.]+(?:, -?[\d.]+)*)\}", text)
    if items:
        return f"({items.group(1)})" if "," in text else items.group(1)
    return "..."


class Function:
    def __init__(self, namespace, result, name, params, doc, layer=""):
        self.namespace, self.result, self.name = namespace, result, name
        self.params, self.doc, self.layer = params, doc, layer

    def path(self):
        return "::".join(self.namespace[1:] + [self.name])


class Param:
    """One argument of a function or field of a struct: type, name, default text or None."""

    def __init__(self, kind, name, default):
        self.kind, self.name, self.default = kind, name, default


def split_top(text, separator=","):
    """Splits where no bracket is open."""
    parts, depth, part = [], 0, ""
    for i, c in enumerate(text):
        if c == "<" and "<" in text[max(0, i - 1):i] + text[i + 1:i + 2]:
            pass  # a shift
        elif c in "([{<":
            depth += 1
        elif c in ")]}>" and not (c == ">" and i and text[i - 1] == "-"):
            depth -= 1
        if c == separator and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


def parse_param(text):
    text = " ".join(text.split())
    default = None
    if "=" in text:
        text, default = (t.strip() for t in text.split("=", 1))
    found = re.match(r"(.*?)([A-Za-z_]\w*)$", text)
    if not found:
        return None
    kind = found.group(1).replace("&&", "").replace("&", "").strip()
    kind = re.sub(r"^const ", "", kind).strip()
    return Param(kind, found.group(2), default)


def block_end(text, at):
    """The place after the } that closes the { at `at`."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(text)


class Headers:
    """What the headers declare."""

    def __init__(self):
        self.functions, self.structs, self.aliases = [], {}, []

    def read(self, path):
        text = "\n".join(line for line in open(path).read().splitlines() if not line.startswith("#"))
        self.scan(text, [])

    def scan(self, text, namespace):
        at, doc = 0, []
        while at < len(text):
            line_end = text.find("\n", at)
            line_end = len(text) if line_end < 0 else line_end
            line = text[at:line_end].strip()
            if line.startswith("//"):
                doc.append(line[2:].strip())
                at = line_end + 1
                continue
            if not line:
                doc = []
                at = line_end + 1
                continue
            at = self.declaration(text, at, namespace, " ".join(doc))

    def declaration(self, text, at, namespace, doc):
        while text[at].isspace():
            at += 1
        brace, semicolon = text.find("{", at), text.find(";", at)
        found = re.compile(r"(inline )?namespace ([\w:]+) \{").match(text, at)
        if found:
            end = block_end(text, brace)
            self.scan(text[brace + 1:end - 1], namespace + found.group(2).split("::"))
            return end
        found = re.compile(r"(struct|class) (?:\[\[\w+\]\] )?(\w+)( final)?(?: : (?:public )?([\w:]+))? \{").match(text, at)
        if found:
            end = block_end(text, brace)
            self.struct(namespace, found.group(2), found.group(4), text[brace + 1:end - 1], doc)
            return text.find(";", end - 1) + 1
        found = re.compile(r"template <class Size>\s*struct (\w+) \{").match(text, at)
        if found:
            end = block_end(text, brace)
            self.struct(namespace, found.group(1), None, text[brace + 1:end - 1], doc)
            return text.find(";", end - 1) + 1
        if semicolon < 0:
            return len(text)
        paren = text.find("(", at)
        if 0 <= paren < semicolon and not text.startswith(("using", "template", "extern", "#"), at):
            depth, i = 0, paren
            while True:
                depth += {"(": 1, ")": -1}.get(text[i], 0)
                i += 1
                if depth == 0:
                    break
            self.function(namespace, text[at:paren], text[paren + 1:i - 1], doc)
            rest = re.compile(r"[^;{]*").match(text, i).end()
            return block_end(text, rest) if rest < len(text) and text[rest] == "{" else rest + 1
        found = re.compile(r"using ([\w:]+)::(\w+);").match(text, at)
        if found:
            self.aliases.append((namespace, found.group(1).split("::"), found.group(2)))
        found = re.compile(r"using (\w+Options) = (\w+)(?:<(\w+)>)?;").match(text, at)
        if found:
            name, of, size = found.groups()
            self.structs["::".join(namespace + [name])] = [
                Param(re.sub(r"\bSize\b", size, p.kind) if size else p.kind, p.name, p.default)
                for p in self.find(namespace, of) or ()]
        if 0 <= brace < semicolon:
            end = block_end(text, brace)
            rest = re.compile(r"\s*;?").match(text, end).end()
            return rest
        return semicolon + 1

    def function(self, namespace, head, params, doc):
        head = re.sub(r"\b(inline|constexpr|static|\[\[nodiscard\]\])\b", "", " ".join(head.split()))
        found = re.match(r"(.+?) ?\b(\w+)$", head.strip())
        if not found or "operator" in head or "internal" in namespace:
            return
        parsed = [parse_param(p) for p in split_top(params)]
        if all(parsed):
            self.functions.append(Function(namespace, found.group(1).strip(), found.group(2), parsed, doc))

    def struct(self, namespace, name, base, body, doc):
        body = re.sub(r"//[^\n]*", "", body)
        if base in HANDLES:
            # Not the constructor that another one calls: ": Adam(options.learning_rate, options)".
            for found in re.finditer(r"(?<!: )\b%s\(" % name, body):
                i, depth = found.end(), 1
                while depth:
                    depth += {"(": 1, ")": -1}.get(body[i], 0)
                    i += 1
                parsed = [parse_param(p) for p in split_top(body[found.end():i - 1])]
                if all(parsed):
                    self.functions.append(Function(namespace, name, name, parsed, doc, HANDLES[base]))
            return
        fields = list(self.find(namespace, base) or []) if base else []
        for text in split_top(body, ";"):
            text = " ".join(text.split())
            if "(" in text.split("=")[0] or text.startswith(("using", "template", "static", "friend")):
                continue
            names = split_top(text)
            field = parse_param(names[0])
            if field is None or not field.kind:
                continue
            fields.append(field)
            for other in names[1:]:
                more = parse_param(field.kind + " " + other)
                if more:
                    fields.append(more)
        self.structs["::".join(namespace + [name])] = fields

    def find(self, namespace, kind):
        """The fields of a struct that `kind` names in this namespace, or None."""
        for depth in range(len(namespace), -1, -1):
            fields = self.structs.get("::".join(namespace[:depth] + [kind]))
            if fields is not None:
                return fields
        return None


def read_signatures(path):
    signatures = {}
    for line in open(path):
        name, _, arguments = line.rstrip("\n").partition("\t")
        signatures[name] = [a for a in arguments.split(", ") if a]
    return signatures


def read_docs(path):
    """What to say where a comment of the headers is none, or that of several functions."""
    return dict(line.rstrip("\n").split("\t", 1) for line in open(path))


class Binder:
    def __init__(self, headers, signatures, docs=None):
        self.headers, self.signatures, self.docs = headers, signatures, docs or {}
        self.left_out, self.bound, self.results = [], {}, set()

    def options_of(self, f, kind):
        return self.headers.find(f.namespace, kind) if kind.endswith("Options") else None

    def routine(self, f, number):
        """The C++ text of one overload, or None."""
        direct, fields, call, site = [], [], [], False
        for p in f.params:
            options = self.options_of(f, p.kind)
            if p.kind == "Site":
                site = True
                call.append("site")
            elif options is not None and p.default is None and all(o.default is None for o in options):
                return None  # the plain form stands beside it
            elif options is not None:
                # An argument wins over a field of its name (stateless_normal's seed).
                fields += [(p, o) for o in options if o.name not in {q.name for q in f.params}]
                call.append("p_" + p.name)
            elif p.kind in VALUES:
                direct.append(p)
                call.append("p_" + p.name)
            else:
                return self.leave(f, f"argument {p.name} of type {p.kind}")
        result = f.layer or f.result
        if not f.layer and result not in RESULTS:
            if self.headers.find(f.namespace, result) is None:
                return self.leave(f, f"result {result}")
            self.results.add((tuple(f.namespace), result))
        names, slots = self.names(f, direct, [o for _, o in fields])
        lines = [f"static PyObject* routine_{number}(Arguments& args_) {{"]
        aliases = ", ".join('{"%s", "%s"}' % n for n in names)
        lines.append("  static constexpr Name kNames[] = {%s};" % (aliases or '{"", ""}'))
        lines.append(f"  args_.bind(kNames, {len(names)});")
        for p in direct:
            default = "" if p.default is None else f", {p.kind}({self.default(p)})"
            form = "get" if p.default is None else "get_or"
            kind = "std::string" if p.kind == "std::string_view" else p.kind
            lines.append(f"  auto p_{p.name} = args_.{form}<{kind}>({slots[p.name]}{default});")
        for p in f.params:
            if self.options_of(f, p.kind) is not None:
                lines.append(f"  {p.kind} p_{p.name}{{}};")
        for p, o in fields:
            lines.append(f"  args_.set({slots[o.name]}, p_{p.name}.{o.name});")
        if site:
            lines.append("  const Site site = args_.site();")
        # Qualified: a tensor's own namespace has some of the same names.
        made = f"::{'::'.join(f.namespace)}::{f.name}({', '.join(call)})"
        if f.layer:
            made = f"{f.layer}({made})"
        lines.append(f"  return args_.run([&] {{ return {made}; }});")
        lines.append("}")
        return "\n".join(lines)

    def parameters(self, f):
        """The arguments in Python's order: pairs of the name and the C++ one they stand for."""
        direct, fields = [], []
        for p in f.params:
            if self.options_of(f, p.kind) is not None:
                fields += [o for o in self.options_of(f, p.kind) if o.name not in {q.name for q in f.params}]
            elif p.kind != "Site":
                direct.append(p)
        needed = {p.name for p in direct if p.default is None}
        kinds, optional, made = {p.name: p for p in direct + fields}, False, []
        for name, own in self.names(f, direct, fields)[0]:
            optional = optional or own not in needed
            made.append((name + "_" if keyword.iskeyword(name) else name, kinds[own], optional))
        return made

    def signature_text(self, f):
        """What inspect.signature() reads."""
        parts = []
        for name, p, optional in self.parameters(f):
            value = "..." if p.default is None else python_value(p.default)
            parts.append(f"{name}={value}" if optional else name)
        if not any(part.split("=")[0] == "name" for part in parts):
            parts.append("name=None")
        return f"({', '.join(parts)})"

    def doc(self, path, group):
        """The line of docs.tsv, else the first comment of a group, in Python's words."""
        return python_words(self.docs.get(path) or next((f.doc for f in group if f.doc), ""))

    def leave(self, f, why):
        self.left_out.append(f"{f.path()}: {why}")

    @staticmethod
    def default(p):
        return "" if p.default in ("{}", None) else p.default

    def names(self, f, direct, fields):
        """The arguments in the order of TensorFlow's signature, each with a second name."""
        tf = self.signature(f)
        own = [p.name for p in direct] + [o.name for o in fields]
        if tf is None:
            return [(n, n) for n in own], {n: i for i, n in enumerate(own)}
        tf = [t for t in tf if t not in ("name", "*args", "**kwargs", "self")]
        taken = {n: n for n in own if n in tf}
        rest = [t for t in tf if t not in taken.values()]
        for n in [p.name for p in direct] + [o.name for o in fields if o.default is None]:
            if n not in taken and rest:
                # Arguments without a namesake stand in the same order.
                taken[n] = rest.pop(0)
        for n in own:
            if n not in taken and n + "_value" in rest:  # on and off of one_hot
                taken[n] = rest.pop(rest.index(n + "_value"))
        order = [t for t in tf if t in taken.values()]
        back = {t: n for n, t in taken.items()}
        names = [(t, back[t]) for t in order]
        names += [(n, n) for n in own if n not in taken]
        return names, {n: i for i, (_, n) in enumerate(names)}

    def signature(self, f):
        path = [p for p in f.namespace[1:]]
        for name in (".".join(["tf"] + path + [f.name]), ".".join(path + [f.name]),
                     ".".join(["keras", "layers", f.name]) if f.layer == "Layer" else ""):
            if name in self.signatures:
                return self.signatures[name]
        return None

    def write(self, folder, files):
        overloads = {}
        for f in self.headers.functions:
            overloads.setdefault((tuple(f.namespace), f.name, f.layer), []).append(f)
        # Tables name functions by path; routines stand in the namespace of theirs.
        texts, tables = [[] for _ in range(files)], [[] for _ in range(files)]
        number = 0
        for n, ((namespace, name, layer), group) in enumerate(sorted(overloads.items(), key=str)):
            numbers, taken = [], []
            for f in group:
                text = self.routine(f, number)
                if text is None:
                    continue
                taken.append(f)
                space = "::".join(namespace)
                texts[n % files].append(f"namespace {space} {{\nusing namespace berth::python;\n{text}\n}}")
                numbers.append(f"{space}::routine_{number}")
                number += 1
            if not numbers:
                continue
            path = ".".join(namespace[1:] + (name,))
            self.bound[path] = group
            # The form of inspect.signature(): of the overload with most arguments.
            longest = max((self.signature_text(f) for f in taken), key=lambda s: s.count(","))
            doc = f"{name}{longest}\n--\n\n{self.doc(path, group)}"
            doc = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            tables[n % files].append(f'  {{"{path}", "{doc}", {{{", ".join(numbers)}}}}},')
        for i in range(files):
            with open(os.path.join(folder, f"bind_{i}.cc"), "w") as out:
                out.write('#include "berth/berth.h"\n#include "berth/keras.h"\n#include "arguments.h"\n\n')
                out.write("\n".join(texts[i]))
                out.write(f"\n\nnamespace berth::python {{\nstd::vector<Bound> bound_{i}() {{\n  return {{\n")
                out.write("\n".join(tables[i]) + "\n  };\n}\n}  // namespace berth::python\n")
        with open(os.path.join(folder, "results.inc"), "w") as out:
            structs = {}
            for namespace, kind in self.results:
                for depth in range(len(namespace), -1, -1):
                    full = "::".join(list(namespace[:depth]) + [kind])
                    if full in self.headers.structs:
                        structs[full] = self.headers.structs[full]
                        break
            for full, fields in sorted(structs.items()):
                values = ", ".join(f"to_python(r.{o.name})" for o in fields)
                out.write(f"inline nb::object to_python(const {full}& r) {{\n"
                          f"  return nb::make_tuple({values});\n}}\n")
        with open(os.path.join(folder, "aliases.inc"), "w") as out:
            for namespace, source, name in self.headers.aliases:
                full = source[1:] if source[0] == "berth" else self.resolve(namespace, source, name)
                target = ".".join(full + [name])
                if target in self.bound:
                    out.write('{"%s", "%s"},\n' % (".".join(namespace[1:] + [name]), target))
        with open(os.path.join(folder, "left_out.txt"), "w") as out:
            out.write("\n".join(sorted(set(self.left_out))) + "\n")

    def resolve(self, namespace, source, name):
        for depth in range(len(namespace), 0, -1):
            full = namespace[1:depth] + source
            if ".".join(full + [name]) in self.bound:
                return full
        return source


def main():
    include, signatures, folder = sys.argv[1:4]
    headers = Headers()
    for header in HEADERS:
        headers.read(os.path.join(include, "berth", header))
    os.makedirs(folder, exist_ok=True)
    docs = read_docs(os.path.join(os.path.dirname(signatures), "docs.tsv"))
    binder = Binder(headers, read_signatures(signatures), docs)
    binder.write(folder, 4)
    unknown = sorted(set(docs) - set(binder.bound))
    if unknown:
        sys.exit(f"docs.tsv has names that no header declares: {unknown}")


if __name__ == "__main__":
    main()
