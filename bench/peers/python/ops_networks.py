"""Partners of bench/ops: norms, convolutions, pools, attention, losses and updates."""
from ops_arrays import FLOATS, Partners, image, values


def numpy_ops(np):
    """NumPy has none of them as one call."""
    return {}


def torch_ops(np, torch):
    p = Partners(np, torch.from_numpy)
    f, aten = torch.nn.functional, torch.ops.aten
    logits = p.square(-2, 2)
    p.put("softmax", lambda x: torch.softmax(x, 1), logits, types=FLOATS)
    p.put("log_softmax", lambda x: torch.log_softmax(x, 1), logits, types=FLOATS)
    p.put("masked_softmax", lambda x, m: torch.softmax(x * 0.5 + m, 1), logits, logits,
          types=FLOATS)
    p.put("cross_entropy", lambda x, y: f.cross_entropy(x, y, reduction="none"), logits,
          lambda d, n: np.full((n, n), 1 / n, "f4"), types=FLOATS)
    p.put("sparse_cross_entropy", lambda x, y: f.cross_entropy(x, y, reduction="none"), logits,
          p.places(lambda n: (n,), lambda n: n), types=FLOATS)
    unit = p.square(0, 1)
    p.put("binary_cross_entropy", lambda y, x: f.binary_cross_entropy_with_logits(x, y), unit,
          p.square(), types=FLOATS)
    p.put("mean_squared_error", f.mse_loss, unit, p.square(), types=FLOATS)
    p.put("mean_absolute_error", f.l1_loss, unit, p.square(), types=FLOATS)
    norms(p, np, torch, f, aten)
    convolutions(p, np, torch, f, aten)
    attention(p, np, torch, f)
    updates(p, np, torch)
    return p


def norms(p, np, torch, f, aten):
    row = lambda d, n: values(np, d, (n,))
    p.put("layer_norm", lambda x, s, b: f.layer_norm(x, s.shape, s, b), p.square(), row, row,
          types=FLOATS)
    p.put("rms_norm", lambda x, s: f.rms_norm(x, s.shape, s), p.square(), row, types=FLOATS)

    def layer_norm_grad(dy, x, s):
        mean, rstd = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        return lambda: aten.native_layer_norm_backward(
            dy, x, [x.shape[1]], mean, rstd, s, s, [True, True, True])
    later(p, "layer_norm_grad", layer_norm_grad, p.square(), p.square(), row)
    pixels = images(np, torch)
    per = lambda d, n: values(np, d, (image(n)[3],), 0.5, 1.5)
    p.put("group_norm", lambda x, s, b: f.group_norm(x, 4, s, b), pixels, per, per, types=FLOATS)
    p.put("batch_norm", lambda x, s, b: torch.native_batch_norm(
        x, s, b, None, None, True, 0.1, 1e-3), pixels, per, per, types=FLOATS)
    p.put("batch_norm_inference", lambda x, s, b: f.batch_norm(x, s, s, s, b), pixels, per, per,
          types=FLOATS)
    p.put("batch_norm_grad", lambda dy, x, s: aten.native_batch_norm_backward(
        dy, x, s, None, None, s, s, True, 1e-3, [True, True, True]), pixels, pixels, per,
        types=FLOATS)
    p.put("local_response_norm", lambda x: f.local_response_norm(x, 5), pixels, types=FLOATS)


def later(p, name, prepare, *inputs):
    """A partner whose call is made of its inputs."""
    def make(dtype, side):
        if dtype != "float32":
            return None
        made = [i(dtype, side) for i in inputs]
        return prepare(*[p.wrap(m) if isinstance(m, p.np.ndarray) else m for m in made])
    p[name] = make


def images(np, torch, shape=image):
    """[n, c, h, w] with the channels last in memory."""
    def make(d, n):
        x = torch.from_numpy(values(np, "float32", shape(n)))
        return x.permute(0, 3, 1, 2)
    return make


def convolutions(p, np, torch, f, aten):
    pixels = images(np, torch)

    def filters(per_group):
        def make(d, n):
            c = image(n)[3]
            w = values(np, "float32", (c, 1 if per_group else c, 3, 3))
            return torch.from_numpy(w).contiguous(memory_format=torch.channels_last)
        return make

    p.put("conv2d", lambda x, w: f.conv2d(x, w, padding=1), pixels, filters(False), types=FLOATS)
    p.put("depthwise_conv2d", lambda x, w: f.conv2d(x, w, padding=1, groups=x.shape[1]), pixels,
          filters(True), types=FLOATS)

    def backward(mask):
        return lambda dy, x, w: aten.convolution_backward(
            dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)
    p.put("conv2d_grad_input", backward([True, False, False]), pixels, pixels, filters(False),
          types=FLOATS)
    p.put("conv2d_grad_filter", backward([False, True, False]), pixels, pixels, filters(False),
          types=FLOATS)
    p.put("max_pool", lambda x: f.max_pool2d(x, 2), pixels, types=FLOATS)
    p.put("avg_pool", lambda x: f.avg_pool2d(x, 2), pixels, types=FLOATS)
    p.put("max_pool_argmax", lambda x: f.max_pool2d(x, 2, return_indices=True), pixels,
          types=FLOATS)

    def max_pool_grad(x):
        y, at = f.max_pool2d(x, 2, return_indices=True)
        return lambda: aten.max_pool2d_with_indices_backward(
            y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, at)
    later(p, "max_pool_grad", max_pool_grad, pixels)

    def avg_pool_grad(x):
        y = f.avg_pool2d(x, 2)
        return lambda: aten.avg_pool2d_backward(
            y, x, [2, 2], [2, 2], [0, 0], False, True, None)
    later(p, "avg_pool_grad", avg_pool_grad, pixels)


def attention(p, np, torch, f):
    def heads(n):
        return (1, 2, 8, 64) if n < 100 else (4, 8, 512, 64) if n < 2000 else (18, 8, 1024, 64)
    part = lambda d, n: values(np, d, heads(n), -1, 1)
    p.put("attention", f.scaled_dot_product_attention, part, part, part, types=FLOATS)
    p.put("attention_causal",
          lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), part, part,
          part, types=FLOATS)

    def grad(q, k, v):
        q, k, v = (t.requires_grad_() for t in (q, k, v))
        y = f.scaled_dot_product_attention(q, k, v)
        dy = torch.ones_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
    later(p, "attention_grad", grad, part, part, part)


def updates(p, np, torch):
    p.put("assign", lambda v, x: v.copy_(x), p.square(), p.square(), types=FLOATS)
    p.put("assign_add", lambda v, x: v.add_(x), p.square(), p.square(), types=FLOATS)
    p.put("assign_sub", lambda v, x: v.sub_(x), p.square(), p.square(), types=FLOATS)
    optim = torch.optim
    for name, make in {"sgd": lambda v: optim.SGD(v, 0.01, fused=True),
                       "momentum": lambda v: optim.SGD(v, 0.01, momentum=0.9, fused=True),
                       "adagrad": lambda v: optim.Adagrad(v, 0.01, fused=True),
                       "rmsprop": lambda v: optim.RMSprop(v, 0.01, momentum=0.5),
                       "rmsprop_centered": lambda v: optim.RMSprop(v, 0.01, momentum=0.5,
                                                                   centered=True),
                       "adam": lambda v: optim.Adam(v, 0.01, fused=True),
                       "adamw": lambda v: optim.AdamW(v, 0.01, fused=True)}.items():
        def prepare(x, make=make):
            v = torch.nn.Parameter(x)
            v.grad = x.clone()
            return make([v]).step
        later(p, name, prepare, p.square())
