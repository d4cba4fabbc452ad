"""What values that are not tensors say where an op, or an operator, is given one by mistake."""

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&",
          "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
_COMPARES = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALONE = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()"}


class NotATensor:
    """A base of classes whose values ops refuse with `__berth_advice__`, what to do instead; so do operators that they lack."""

    __berth_advice__ = "give an op its tensors"


def refuse_kinds(function, wanted, **arguments):
    """Raises a TypeError that names the function, where an argument is such a value and not `wanted`, "a list of tensors"."""
    for name, value in arguments.items():
        if isinstance(value, NotATensor):
            raise TypeError(f"{function}(): {name!r} must be {wanted}, not a {type(value).__name__}; {value.__berth_advice__}")


def _refusing(sign, reversed=False):
    def operate(self, *other):
        sides = [type(v).__name__ for v in (self, *other)][::-1 if reversed else 1]
        raise TypeError(f"operator {sign} of {' and '.join(sides)}: expected tensors; a {type(self).__name__} has no such "
                        f"operator; {self.__berth_advice__}")
    return operate


for _name, _sign in {**_SIGNS, **_COMPARES, **_ALONE}.items():
    setattr(NotATensor, f"__{_name}__", _refusing(_sign))
for _name, _sign in _SIGNS.items():
    setattr(NotATensor, f"__r{_name}__", _refusing(_sign, True))
