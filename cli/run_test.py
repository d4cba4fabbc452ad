#!/usr/bin/env python3
"""berth place, plan and run on a file of a function that is written here byte by byte."""
import json
import os
import struct
import subprocess
import sys
import tempfile

BERTH = sys.argv[1]
GRAPH = """berth-graph 1
graph affine
node x = _Arg() {dtype = float32, index = 0, shape = shape[?1,2]} -> float32[?1,2]
node w = VarHandleOp() {dtype = float32, shape = shape[2,2], shared_name = "w"} \
-> resource(float32)[2,2]
node r = ReadVariableOp(w:0) -> float32[2,2]
node y = MatMul(x:0, r:0) -> float32[?1,2]
return y:0
"""


def safetensors(tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def berth(*arguments, code=0):
    done = subprocess.run([BERTH, *arguments], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)

        def write(name, data):
            with open(name, "wb") as file:
                file.write(data)
        good = safetensors({"variable/w": ([2, 2], [1, 2, 3, 4])}, {"berth.graph": GRAPH})
        write("f.safetensors", good)
        write("x.safetensors", safetensors({"0": ([3, 2], [1, 0, 0, 1, 1, 1])}, {}))
        placed = berth("place", "f.safetensors", "--devices", "CPUx1,GPUx1")
        assert "MatMul" in placed and "y" in placed, placed
        planned = berth("plan", "f.safetensors", "--devices", "CPUx1", "--json")
        assert json.loads(planned), planned
        shown = berth("run", "f.safetensors", "--inputs", "x.safetensors", "--outputs",
                      "y.safetensors")
        assert "float32" in shown, shown
        with open("y.safetensors", "rb") as file:
            result = file.read()
        # Rows of the unit matrix give w's, and their sum.
        assert struct.unpack("<6f", result[-24:]) == (1, 2, 3, 4, 4, 6), result
        # What the program ran, from outside of it.
        told = berth("profile", "-o", "f.trace.json", "--", BERTH, "run", "f.safetensors")
        assert "f.trace.json has" in told, told
        with open("f.trace.json", encoding="utf-8") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
        assert "y" in names, names
        assert "cannot be started" in berth("profile", "--", "./no-such-program", code=1)
        assert "[5,2]" in berth("run", "f.safetensors", "--batch", "5")
        write("cut.safetensors", good[:-1])
        write("weights.safetensors", safetensors({"w": ([1], [1])}, {}))
        for name, word in (("cut", "expected"), ("weights", "no graph"), ("none", "cannot read")):
            for command in (("place", "--devices", "CPUx1"), ("plan", "--devices", "CPUx1")):
                assert "berth: " in berth(command[0], f"{name}.safetensors", *command[1:], code=2)
            said = berth("run", f"{name}.safetensors", code=1)
            assert name + ".safetensors" in said, said
            assert name == "cut" or word in said, said
        assert "--batch" in berth("run", "f.safetensors", "--batch", "0", code=2)


if __name__ == "__main__":
    main()
