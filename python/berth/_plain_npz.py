"""Writes .npz files whose arrays are lists of integers as files of numbers alone.

usage: plain_npz FILE.npz

Makes FILE-plain.npz beside it: instead of array `x`, `x_words` has the integers
of its lists one after another, `x_lengths` how many each list has. Python objects
in an .npz file are pickles, which may run any program: files other than those
that Keras publishes (imdb.npz, reuters.npz) are converted with --trust only.
"""
import argparse
import hashlib
import os
import sys

import numpy

PUBLISHED = {"69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",  # imdb.npz
             "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"}  # reuters.npz


def is_published(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() in PUBLISHED


def convert(path, plain):
    """Reads the file `path` and what it pickles, and writes `plain`."""
    arrays = {}
    with numpy.load(path, allow_pickle=True) as file:
        for name, array in file.items():
            if array.dtype == object:
                arrays[f"{name}_lengths"] = numpy.array([len(x) for x in array], "<i8")
                arrays[f"{name}_words"] = numpy.array([w for x in array for w in x], "<i4")
            else:
                arrays[name] = array
    part = f"{plain}.{os.getpid()}.npz"
    try:
        numpy.savez_compressed(part, **arrays)
        os.replace(part, plain)
    finally:
        if os.path.exists(part):
            os.remove(part)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--trust", action="store_true", help="run what the file pickles")
    args = parser.parse_args()
    if not args.trust and not is_published(args.file):
        sys.exit(f"plain_npz: {args.file} is none of the files that Keras publishes; it may run "
                 f"any program: --trust converts it nevertheless")
    plain = args.file.removesuffix(".npz") + "-plain.npz"
    convert(args.file, plain)
    print(plain)


if __name__ == "__main__":
    main()
