"""tf.data on the files that bench_files wrote: CSV to batches, small TFRecords, TFRecord + JPEG
decode + resize. `--model csv[:MB]`, `tfrecord[:COUNT]`, `jpeg[:COUNT]`; run bench_files first."""
import argparse
import json
import os
import time

import common

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="")
parser.add_argument("--cores", type=int, default=1)
parser.add_argument("--seconds", type=float, default=1.0)
args = parser.parse_args()
common.use_cores(args.cores)

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(args.cores)
tf.config.threading.set_inter_op_parallelism_threads(args.cores)
FOLDER = os.environ.get("BERTH_BENCH_DIR", "/tmp/berth_bench_files")


def options():
    o = tf.data.Options()
    o.threading.private_threadpool_size = args.cores
    o.threading.max_intra_op_parallelism = 1
    return o


def csv(size):
    path = f"{FOLDER}/{size}.csv"
    columns = [tf.float32] * 8 + [tf.string, tf.int64]
    rows = tf.data.experimental.CsvDataset(path, columns).batch(1024)
    # Lines in batches, decoded at once, are faster than CsvDataset.
    lines = tf.data.TextLineDataset(path).batch(1024).map(
        lambda x: tf.io.decode_csv(x, [tf.constant([], t) for t in columns]),
        num_parallel_calls=args.cores)
    return path, [("CsvDataset", rows, lambda e: int(e[0].shape[0])),
                  ("decode_csv of batches", lines, lambda e: int(e[0].shape[0]))]


def tfrecord(size):
    path = f"{FOLDER}/{size}.tfrecord"
    return path, [("TFRecordDataset.batch", tf.data.TFRecordDataset(path).batch(256),
                   lambda e: int(e.shape[0]))]


def jpeg(size):
    path = f"{FOLDER}/{size}_jpeg.tfrecord"

    def decode(ratio):
        return lambda s: tf.image.resize(tf.io.decode_jpeg(s, channels=3, ratio=ratio), (224, 224))
    records = tf.data.TFRecordDataset(path)
    return path, [("decode + resize", records.map(decode(1), num_parallel_calls=args.cores),
                   lambda e: 1)]


def main():
    name, _, size = args.model.partition(":")
    for model, make, default in (("csv", csv, "1000"), ("tfrecord", tfrecord, "1000000"),
                                 ("jpeg", jpeg, "2000")):
        if name not in ("", model):
            continue
        path, variants = make(size or default)
        for variant, dataset, count in variants:
            dataset = dataset.with_options(options())
            best, elements, begin = 1e9, 0, time.perf_counter()
            while time.perf_counter() - begin < args.seconds or best == 1e9:
                start, elements = time.perf_counter(), 0
                for element in dataset:
                    elements += count(element)
                best = min(best, time.perf_counter() - start)
            print(json.dumps({"bench": "peer", "framework": "tensorflow", "version": tf.__version__,
                              "variant": variant, "model": model, "cores": args.cores,
                              "elements_per_second": round(elements / best, 1),
                              "mb_per_second": round(os.path.getsize(path) / best / 1e6, 2)}),
                  flush=True)


if __name__ == "__main__":
    main()
