"""Generated code with the file and lines of the source that it comes from.

Tracebacks, and the engine's errors, reports and plans, then name the user's line.
"""
import bisect
import types

# Functions that malt makes of the blocks of one function.
_BLOCKS = ("if_body", "else_body", "loop_body", "loop_test", "get_state", "set_state", "extra_test",
           "<lambda>")


def relabelled(code, source_map, origin):
    """Returns `code` as if it stood where `origin`, the code of the user's function, does."""
    lines = sorted((at.lineno, info.loc.lineno) for at, info in source_map.items())
    known = [line for line, _ in lines]

    def line_of(line):
        at = bisect.bisect_right(known, line) - 1
        return lines[at][1] if at >= 0 else origin.co_firstlineno

    def walk(c):
        name = c.co_name.removeprefix("ag__")
        if name.rstrip("_0123456789") in _BLOCKS:
            name = origin.co_name
        first = line_of(c.co_firstlineno)
        return c.replace(
            co_filename=origin.co_filename, co_name=name, co_firstlineno=first,
            co_linetable=_table([p[0] and line_of(p[0]) for p in c.co_positions()], first),
            co_consts=tuple(walk(k) if isinstance(k, types.CodeType) else k for k in c.co_consts))

    return walk(code)


def _table(lines, first):
    """The location table of CPython 3.11 and later for one line (or None) per code unit."""
    out, at, last = bytearray(), 0, first
    while at < len(lines):
        end = at + 1
        while end < len(lines) and end - at < 8 and lines[end] == lines[at]:
            end += 1
        if lines[at] is None:
            out.append(0x80 | 15 << 3 | end - at - 1)  # no location
        else:
            out.append(0x80 | 13 << 3 | end - at - 1)  # a line without columns
            _put_signed(out, lines[at] - last)
            last = lines[at]
        at = end
    return bytes(out)


def _put_signed(out, value):
    value = -value << 1 | 1 if value < 0 else value << 1
    while value >= 64:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)
