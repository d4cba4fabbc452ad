"""Writes a function for each name of libcuda that the stand-in lacks.

driver_names.py cuda.h stand_in.cc OUTPUT
"""
import re
import sys


def main():
    header, own, output = sys.argv[1:]
    with open(header, encoding="utf-8", errors="replace") as file:
        text = file.read()
    names = set(re.findall(r"CUDAAPI\s+(cu\w+)\s*\(", text))
    for pair in re.findall(
            r"#\s*define\s+(cu\w+)\s+(?:__CUDA_API_\w+\()?(cu\w+)", text):
        names.update(pair)
    with open(own, encoding="utf-8") as file:
        names -= set(re.findall(r"^DRIVER (cu\w+)\(", file.read(), re.M))
    with open(output, "w", encoding="utf-8") as file:
        for name in sorted(names):
            file.write(f"DRIVER {name}() {{ return 0; }}\n")


main()
