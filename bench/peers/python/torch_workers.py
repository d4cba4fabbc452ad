"""A training step of two workers in PyTorch: DistributedDataParallel on Gloo, a core each."""
import os
import socket

import common

args = common.parse()
WORKERS, BATCH = 2, 256  # of all workers together

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def model_of(name):
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 10))
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def work(rank, port, name):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[rank % len(cores)]])
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORKERS)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(model_of(name))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    shape = (BATCH // WORKERS, 1, 28, 28) if name == "cnn" else (BATCH // WORKERS, 784)
    x, y = torch.rand(shape), torch.randint(0, 10, (BATCH // WORKERS,))

    def step():
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()

    # As many steps on both: blocks of a fixed number, as many as fit on the first.
    calls = 2 if name == "cnn" else 20
    times = common.measure_fixed(step, calls, 12)
    if rank == 0:
        common.report_times("torch", torch.__version__, args, "ddp_gloo_2_workers", times)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        PORT = s.getsockname()[1]
    mp.spawn(work, (PORT, args.model), WORKERS)
