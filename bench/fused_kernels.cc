// Training patterns on [1024, 1024] as warm plans on one core, each against
// the same loop fused by hand: --model gelu|layer_norm|layer_norm_grad|xent|
// adam, or all of them.

#include <functional>
#include <memory>

#include "bench/hand/hand.h"
#include "bench_common.h"
#include "berth/berth.h"
#include "ops/op_call.h"
#include "ops/training.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kRows = 1024, kCols = 1024, kSize = kRows * kCols;

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float, Free>;

Floats floats(int64_t n, const Tensor* from = nullptr) {
  Floats p(static_cast<float*>(std::aligned_alloc(
      4096, static_cast<size_t>(n * 4 + 4095) / 4096 * 4096)));
  if (from) {
    const auto values = from->to_vector<float>();
    std::copy(values.begin(), values.end(), p.get());
  } else {
    std::fill_n(p.get(), n, 0.0f);
  }
  return p;
}

Tensor noise(const Shape& shape, double low = -2, double high = 2) {
  return random::uniform(shape, {.minval = low, .maxval = high});
}

struct Pair {
  std::function<void()> ours, hand;
};

// In turns, so that both meet the same moods of the machine.
void report(const char* name, const Pair& pair, const Args& args) {
  Timing ours, hand;
  constexpr int kTurns = 5;
  for (int i = 0; i < kTurns; ++i) {
    const Timing a = measure(pair.ours, args.seconds / kTurns / 2);
    const Timing b = measure(pair.hand, args.seconds / kTurns / 2);
    if (i == 0 || a.best < ours.best) ours = a;
    if (i == 0 || b.best < hand.best) hand = b;
  }
  Line("fused_kernels", 1)
      .add("model", name)
      .add("isa", hand_loops().isa)
      .timing(ours, "us", 1e6)
      .add("hand_us", std::round(hand.best * 1e9) / 1e3)
      .add("over_hand", std::round(ours.best / hand.best * 1000) / 1000)
      .print();
}

void gelu(const Args& args) {
  const Tensor x = noise({kRows, kCols}), bias = noise({kCols});
  const Tensor mask = noise({kRows, kCols}, 0, 2),
               residual = noise({kRows, kCols});
  auto step = function(
      [](const Tensor& a, const Tensor& b, const Tensor& m, const Tensor& r) {
        return nn::gelu(nn::bias_add(a, b), {.approximate = true}) * m + r;
      });
  const Floats hx = floats(kSize, &x), hb = floats(kCols, &bias),
               hm = floats(kSize, &mask), hr = floats(kSize, &residual),
               hy = floats(kSize);
  report("gelu",
         {[&] { step(x, bias, mask, residual); },
          [&] {
            hand_loops().gelu(hx.get(), hb.get(), hm.get(), hr.get(), hy.get(),
                              kRows, kCols);
          }},
         args);
}

void layer_norm(const Args& args, bool backward) {
  const Tensor x = noise({kRows, kCols}), scale = noise({kCols}),
               offset = noise({kCols}), dy = noise({kRows, kCols});
  static const OpDef& op = op_named("LayerNorm");
  static const OpDef& grad_op = op_named("LayerNormGrad");
  auto forward =
      function([&](const Tensor& a, const Tensor& s, const Tensor& o) {
        return call_many(op, {&a, &s, &o});
      });
  const Tensors y = forward(x, scale, offset);
  auto step = function([&](const Tensor& d, const Tensor& a, const Tensor& s,
                           const Tensor& mean, const Tensor& rstd) {
    return call_many(grad_op, {&d, &a, &s, &mean, &rstd});
  });
  const Floats hx = floats(kSize, &x), hs = floats(kCols, &scale),
               ho = floats(kCols, &offset), hy = floats(kSize),
               hd = floats(kSize, &dy), mean = floats(kRows, &y[1]),
               rstd = floats(kRows, &y[2]), ds = floats(kCols),
               doff = floats(kCols);
  Pair pair = {[&] { forward(x, scale, offset); },
               [&] {
                 hand_loops().layer_norm(hx.get(), hs.get(), ho.get(), hy.get(),
                                         mean.get(), rstd.get(), kRows, kCols);
               }};
  if (backward) {
    pair = {[&] { step(dy, x, scale, y[1], y[2]); },
            [&] {
              hand_loops().layer_norm_grad(hd.get(), hx.get(), hs.get(),
                                           mean.get(), rstd.get(), hy.get(),
                                           ds.get(), doff.get(), kRows, kCols);
            }};
  }
  report(backward ? "layer_norm_grad" : "layer_norm", pair, args);
}

void xent(const Args& args) {
  const Tensor logits = noise({kRows, kCols});
  const Tensor labels = random::uniform(
      {kRows}, {.minval = 0, .maxval = double{kCols}, .dtype = int32});
  static const OpDef& op = op_named("SparseSoftmaxCrossEntropyWithLogits");
  auto step = function([&](const Tensor& x, const Tensor& t) {
    return call_many(op, {&x, &t});
  });
  const Floats hx = floats(kSize, &logits), loss = floats(kRows),
               grad = floats(kSize);
  const std::vector<int32_t> hl = labels.to_vector<int32_t>();
  report("xent",
         {[&] { step(logits, labels); },
          [&] {
            hand_loops().xent(hx.get(), hl.data(), loss.get(), grad.get(),
                              kRows, kCols);
          }},
         args);
}

void adam(const Args& args) {
  const Tensor g = noise({kRows, kCols});
  const Variable w(noise({kRows, kCols})), m(zeros({kRows, kCols})),
      v(zeros({kRows, kCols}));
  auto step = function([&](const Tensor& grad) {
    const training::AdamScalars s{constant(0.9f),   constant(0.999f),
                                  constant(1e-3f),  constant(0.9f),
                                  constant(0.999f), constant(1e-7f)};
    training::apply_adam(w.handle(), m.handle(), v.handle(), s, grad, false);
    return Tensors{};
  });
  const Tensor start = w.value();
  const Floats hg = floats(kSize, &g), hw = floats(kSize, &start),
               hm = floats(kSize), hv = floats(kSize);
  report("adam",
         {[&] { step(g); },
          [&] {
            hand_loops().adam(hw.get(), hg.get(), hm.get(), hv.get(), kSize,
                              1e-3f);
          }},
         args);
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(1)) return skip("fused_kernels", 1, "no core");
  const auto asked = [&](const char* name) {
    return args.model.empty() || args.model == name;
  };
  if (asked("gelu")) gelu(args);
  if (asked("layer_norm")) layer_norm(args, false);
  if (asked("layer_norm_grad")) layer_norm(args, true);
  if (asked("xent")) xent(args);
  if (asked("adam")) adam(args);
}
