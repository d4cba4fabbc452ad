"""PyTorch's DataLoader on the JPEGs that bench_files wrote: decode + resize, elements per second.
`--model jpeg[:COUNT]`; run bench_files first. Variants: Pillow, which most programs use, and
torchvision's decoder, each with and without worker processes."""
import argparse
import io
import json
import os
import struct
import time

import common

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="")
parser.add_argument("--cores", type=int, default=1)
parser.add_argument("--seconds", type=float, default=1.0)
args = parser.parse_args()
common.use_cores(args.cores)

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import functional

FOLDER = os.environ.get("BERTH_BENCH_DIR", "/tmp/berth_bench_files")
SIDE = 224
torch.set_num_threads(1)


def read_records(path):
    """Records of a TFRecord file; their checksums are not looked at."""
    records = []
    with open(path, "rb") as file:
        while head := file.read(12):
            records.append(file.read(struct.unpack("<Q", head[:8])[0]))
            file.read(4)
    return records


def by_pillow(data):
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
    return functional.pil_to_tensor(image)


def by_torchvision(data):
    image = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB)
    return functional.resize(image, [SIDE, SIDE], antialias=False)


class Jpegs(Dataset):
    def __init__(self, records, decode):
        self.records, self.decode = records, decode

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        return self.decode(self.records[i])


def main():
    name, _, size = args.model.partition(":")
    if name not in ("", "jpeg"):
        return
    path = f"{FOLDER}/{size or '2000'}_jpeg.tfrecord"
    records = read_records(path)
    for decode in (by_pillow, by_torchvision):
        for workers in sorted({0, args.cores}):
            loader = DataLoader(Jpegs(records, decode), 32, num_workers=workers,
                                persistent_workers=workers > 0)
            best, begin = 1e9, time.perf_counter()
            while time.perf_counter() - begin < args.seconds or best == 1e9:
                start = time.perf_counter()
                elements = sum(batch.shape[0] for batch in loader)
                best = min(best, time.perf_counter() - start)
            print(json.dumps({"bench": "peer", "framework": "torch", "version": torch.__version__,
                              "variant": f"{decode.__name__}, {workers} workers", "model": "jpeg",
                              "cores": args.cores,
                              "elements_per_second": round(elements / best, 1),
                              "mb_per_second": round(os.path.getsize(path) / best / 1e6, 2)}),
                  flush=True)


if __name__ == "__main__":
    main()
