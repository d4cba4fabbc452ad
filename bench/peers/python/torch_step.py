"""Training steps in PyTorch 2: eager and torch.compile, both memory layouts, fused optimizers."""
import common

args = common.parse()
common.use_cores(args.cores)

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(args.cores)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for stage in range(4):
        for i in range(2):
            after = 64 << stage
            layers.append(Block(before, after, 2 if stage and not i else 1))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        batch, seq, dim = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, seq, 3, self.heads, dim // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, seq, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, dim, heads, seq, vocab, **_):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, dim), nn.Embedding(seq, dim)
        self.layers = nn.Sequential(*[Layer(dim, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        h = self.tokens(ids) + self.positions.weight
        return self.head(self.norm(self.layers(h))).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self, layers, units, **_):
        super().__init__()
        self.lstm = nn.LSTM(units, units, layers, batch_first=True)
        self.head = nn.Linear(units, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def build():
    """model, batches of (x, y), optimizer of its parameters"""
    if args.model == "gpt":
        g = common.GPT
        shape = (g["batch"], g["seq"])
        batches = [(torch.randint(g["vocab"], shape), torch.randint(g["vocab"], shape).flatten())
                   for _ in range(4)]
        return Gpt(**g), batches, lambda p: torch.optim.AdamW(p, 3e-4, fused=True)
    if args.model == "resnet18":
        batches = [(torch.rand(32, 3, 32, 32), torch.randint(10, (32,))) for _ in range(4)]
        return resnet18(), batches, lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=5e-4,
                                                              fused=True)
    if args.model == "lstm":
        m = common.LSTM
        batches = [(torch.randn(m["batch"], m["seq"], m["units"]),
                    torch.randint(10, (m["batch"],))) for _ in range(4)]
        return Lstm(**m), batches, lambda p: torch.optim.Adam(p, 1e-3, fused=True)
    if args.model == "cnn":
        model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Flatten(), nn.Linear(14 * 14 * 32, 10))
        batches = [(torch.rand(64, 1, 28, 28), torch.randint(10, (64,))) for _ in range(16)]
    else:
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        batches = [(torch.rand(64, 784), torch.randint(10, (64,))) for _ in range(16)]
    return model, batches, lambda p: torch.optim.Adam(p, 1e-3, fused=True)


def step_of(compiled, channels_last):
    model, batches, optimizer = build()
    if channels_last:
        layout = torch.channels_last
        model = model.to(memory_format=layout)
        batches = [(x.contiguous(memory_format=layout), y) for x, y in batches]
    update = optimizer(model.parameters())
    forward = torch.compile(model) if compiled else model
    count = 0

    def step():
        nonlocal count
        x, y = batches[count % len(batches)]
        count += 1
        update.zero_grad()
        F.cross_entropy(forward(x), y).backward()
        update.step()

    return step


variants = []
for layout in [False, True] if args.model in ("cnn", "resnet18") else [False]:
    for compiled in (False, True):
        name = ("compile" if compiled else "eager") + ("_channels_last" if layout else "")
        variants.append((name, lambda c=compiled, l=layout: step_of(c, l)))
common.report("torch", torch.__version__, args, variants)
