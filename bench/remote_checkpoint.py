#!/usr/bin/env python3
"""A checkpoint to a server of S3 (moto, on this machine) over a plain multi-part upload of as many bytes by its client.

    pip install 'moto[server]' s3fs; bench/remote_checkpoint.py [--megabytes 1000] [--rounds 3]

Prints the medians of: save() to sync(), the time that save() takes of the step, `put` of s3fs and upload_file of boto3 of a
file that is on the disk already, and restore() over `get`; and the ratios. The rounds alternate.
"""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tests"))

import berth as tf  # noqa: E402
import fsspec  # noqa: E402
import numpy as np  # noqa: E402
from remote_files import Moto  # noqa: E402


def seconds(call):
    """How long a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def rows(server, megabytes, rounds):
    """{row: the seconds of each round}."""
    size = megabytes * 1_000_000 // 4 // 8
    parts = [tf.Variable(np.random.default_rng(i).normal(size=size).astype("float32")) for i in range(8)]
    checkpoint = tf.train.Checkpoint(parts=parts)
    fs = fsspec.filesystem("s3")
    out = {name: [] for name in ("save", "saved", "put", "upload_file", "restore", "get")}
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.write(f"{folder}/plain")
        local = f"{path}.safetensors"
        for i in range(rounds):
            url = f"s3://bucket/run{i}"

            def whole():
                out["save"].append(seconds(lambda: checkpoint.write(f"{url}/ckpt")))
                checkpoint.sync()
            out["saved"].append(seconds(whole))
            out["put"].append(seconds(lambda: fs.put_file(local, f"bucket/put{i}")))
            out["upload_file"].append(seconds(lambda: server.client.upload_file(local, "bucket", f"boto{i}")))
            again = tf.train.Checkpoint(parts=parts)
            out["restore"].append(seconds(lambda: again.read(f"{url}/ckpt").assert_consumed()))
            out["get"].append(seconds(lambda: fs.get_file(f"bucket/put{i}", f"{folder}/got")))
            for name in (f"put{i}", f"boto{i}", f"run{i}/ckpt.safetensors"):
                server.client.delete_object(Bucket="bucket", Key=name)
            shutil.rmtree(f"{folder}/got", ignore_errors=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    server = Moto()
    os.environ.update(server.environment())
    try:
        found = {k: statistics.median(v) for k, v in rows(server, options.megabytes, options.rounds).items()}
    finally:
        server.close()
    print(f"{options.megabytes} MB, medians of {options.rounds} rounds, seconds")
    for name, value in found.items():
        print(f"  {name:12} {value:8.2f}")
    print(f"checkpoint over put of s3fs:        {found['saved'] / found['put']:.2f}")
    print(f"checkpoint over upload_file of boto3: {found['saved'] / found['upload_file']:.2f}")
    print(f"restore over get of s3fs:           {found['restore'] / found['get']:.2f}")


if __name__ == "__main__":
    main()
