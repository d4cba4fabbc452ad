"""60,000 images: random crop, cast, scale, shuffle, batch 64: elements per second of tf.data and of
PyTorch's DataLoader, the peers of bench_map_pipeline."""
import argparse
import json
import time

import common

IMAGES, SIDE, CROP, BATCH = 60000, 28, 24, 64


def tf_data(cores):
    import numpy as np
    import tensorflow as tf
    images = np.arange(IMAGES * SIDE * SIDE, dtype=np.uint8).reshape(IMAGES, SIDE, SIDE, 1)
    labels = np.full(IMAGES, 7, np.int64)

    def one(x, y):
        x = tf.image.random_crop(x, (CROP, CROP, 1))
        return tf.cast(x, tf.float32) / 255.0, y

    def many(x, y):  # crops a batch at once, with one offset: less than what is asked for
        x = tf.image.random_crop(x, (tf.shape(x)[0], CROP, CROP, 1))
        return tf.cast(x, tf.float32) / 255.0, y

    source = tf.data.Dataset.from_tensor_slices((images, labels))
    auto = tf.data.AUTOTUNE
    yield "tf.data", tf.__version__, source.map(one, num_parallel_calls=auto).shuffle(
        IMAGES).batch(BATCH).prefetch(auto)
    yield "tf.data, map behind shuffle", tf.__version__, source.shuffle(IMAGES).map(
        one, num_parallel_calls=auto).batch(BATCH).prefetch(auto)
    yield "tf.data, batches, one crop for each", tf.__version__, source.shuffle(IMAGES).batch(
        BATCH).map(many, num_parallel_calls=auto).prefetch(auto)


def torch_loader(cores):
    import torch
    from torch.utils.data import DataLoader, Dataset
    torch.set_num_threads(1)

    class Images(Dataset):
        def __init__(self):
            self.x = torch.arange(IMAGES * SIDE * SIDE).to(torch.uint8).view(IMAGES, SIDE, SIDE)
            self.y = torch.full((IMAGES,), 7)

        def __len__(self):
            return IMAGES

        def __getitem__(self, i):
            top, left = torch.randint(0, SIDE - CROP + 1, (2,)).tolist()
            return self.x[i, top:top + CROP, left:left + CROP].float() / 255.0, self.y[i]

    for workers in sorted({0, 1, cores}):
        yield f"DataLoader, {workers} workers", torch.__version__, DataLoader(
            Images(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", choices=("tf", "torch"), default="tf")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    common.use_cores(args.cores)
    make = {"tf": tf_data, "torch": torch_loader}[args.framework]
    for name, version, dataset in make(args.cores):
        best, begin = 1e9, time.perf_counter()
        runs = 0
        while runs < 3 or time.perf_counter() - begin < args.seconds:
            start = time.perf_counter()
            rows = sum(x.shape[0] for x, _ in dataset)
            best = min(best, time.perf_counter() - start)
            runs += 1
            assert rows == IMAGES
        print(json.dumps({"bench": "peer", "model": "map_pipeline", "variant": name,
                          "version": version, "cores": args.cores,
                          "elements_per_second": IMAGES / best}))


if __name__ == "__main__":
    main()
