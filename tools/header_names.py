"""Which names the public headers declare: used by tools/api_table.

A small reader of declarations, not a compiler: it follows namespaces, classes and enums, and skips
the bodies of functions. names() returns {qualified name: header}.
"""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include", "berth")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
                   re.S | re.M)
TOKEN = re.compile(r"\w+|::|[{}();=,<>~&*:\[\]]")
# Words that stand before "(" and name nothing.
WORDS = {"requires", "noexcept", "decltype", "sizeof", "static_assert", "alignas", "explicit",
         "if", "return", "delete", "default", "const", "defined"}


class Reader:
    def __init__(self, text):
        self.tokens = TOKEN.findall(NOISE.sub(" ", text))
        self.at = 0
        self.found = []

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def skip(self, opening, closing):
        """From an opening token to after its closing one."""
        depth = 0
        while self.at < len(self.tokens):
            depth += {opening: 1, closing: -1}.get(self.peek(), 0)
            self.at += 1
            if depth == 0:
                return

    def record(self, scope, name):
        in_class = any(part[:1].isupper() for part in scope)
        if (re.fullmatch(r"[A-Za-z]\w*", name) and name not in WORDS and
                not (in_class and name.endswith("_"))):
            self.found.append("::".join([*scope, name]))

    def scope(self, scope, in_class=False):
        """Declarations up to the closing brace of a namespace or class."""
        while self.at < len(self.tokens) and self.peek() != "}":
            self.declaration(scope, in_class)
        self.at += 1

    def declaration(self, scope, in_class):
        word = self.peek()
        if word == "namespace":
            self.at += 1
            name = []
            while self.peek() not in ("{", ";", "="):
                name += [self.peek()] if self.peek() != "::" else []
                self.at += 1
            if self.peek() == "{":
                self.at += 1
                self.scope([*scope, *name])
                return
        elif word in ("class", "struct", "enum"):
            self.type_of(scope, word)
            return
        elif word == "using":
            self.using(scope)
            return
        elif word == "template":
            self.at += 1
            self.skip("<", ">")
            return
        elif word in ("public", "private", "protected") and self.peek(1) == ":":
            self.at += 2
            return
        elif word == "friend":
            while self.peek() not in (";", "{", ""):
                self.at += 1
        self.value(scope)

    def type_of(self, scope, word):
        self.at += 1
        enum = word == "enum"
        if enum and self.peek() in ("class", "struct"):
            self.at += 1
        while self.peek() == "[":
            self.skip("[", "]")
        name = self.peek()
        while self.peek() not in ("{", ";", ""):
            if self.peek() == "(":  # a function that returns a struct
                return
            self.at += 1
        if self.peek() == ";":  # declared ahead
            self.at += 1
            return
        self.record(scope, name)
        self.at += 1
        if not enum:
            self.scope([*scope, name], in_class=True)
        else:
            while self.peek() not in ("}", ""):
                if self.peek(-1) in ("{", ","):
                    self.record([*scope, name], self.peek())
                self.at += 1
            self.at += 1
        if self.peek() == ";":
            self.at += 1

    def using(self, scope):
        self.at += 1
        last = ""
        namespace = self.peek() == "namespace"
        while self.peek() not in (";", "=", ""):
            last = self.peek()
            self.at += 1
        if not namespace:
            self.record(scope, last)
        while self.peek() not in (";", ""):
            self.at += 1
        self.at += 1

    def value(self, scope):
        """A function, variable or field: up to ";" or after a body."""
        named = False
        while self.at < len(self.tokens):
            word = self.peek()
            if word == "}":
                return
            if word == ";":
                self.at += 1
                return
            if word == "operator":
                call = [self.peek(n) for n in (1, 2, 3)] == ["(", ")", "("]
                self.at += 3 if call else 1
                while self.peek() not in ("(", ""):
                    self.at += 1
                named = True
            elif word == "(":
                self.skip("(", ")")
            elif word == "<":
                self.skip("<", ">")
            elif word == "{":
                self.skip("{", "}")
                if self.peek() == ";":
                    self.at += 1
                return
            elif word == "=":
                while self.peek() not in (";", ""):
                    if self.peek() in ("(", "{"):
                        self.skip(self.peek(), {"(": ")", "{": "}"}[self.peek()])
                    else:
                        self.at += 1
            else:
                after = self.peek(1)
                if not named and after in ("(", ";", "=", "{", ",", "["):
                    self.record(scope, word)
                    named = after == "(" and word not in WORDS
                self.at += 1


def names(patterns="ops/*.h *.h keras/*.h"):
    """{qualified name without berth::, header below include/berth}."""
    table = {}
    for pattern in patterns.split():
        for path in sorted(glob.glob(os.path.join(INCLUDE, pattern))):
            with open(path, encoding="utf-8") as f:
                reader = Reader(f.read())
            while reader.at < len(reader.tokens):
                reader.scope([])
            header = os.path.relpath(path, INCLUDE)
            for name in reader.found:
                if name.startswith("berth::") and "::internal::" not in name:
                    # aliases.h says again what another header declares.
                    table.setdefault(name[len("berth::"):], header)
    return table
