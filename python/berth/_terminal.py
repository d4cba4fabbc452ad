"""Where a line can be drawn again: terminals and notebooks."""
import os


def columns(out):
    """Returns the width of the lines that "\\r" can draw again on `out`, or 0: a file, a pipe, a test."""
    if type(out).__module__.startswith("ipykernel"):
        return 80  # a notebook; it says that it is not a terminal
    try:
        if not out.isatty():
            return 0
        return os.get_terminal_size(out.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return 0
