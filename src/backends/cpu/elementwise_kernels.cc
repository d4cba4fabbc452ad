// Arithmetic, functions and activations. Outputs may share an operand's bytes.

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "expr/program.h"

namespace berth::cpu {

namespace {

constexpr int64_t kTiny = 32;
// Results of this many elements are written past the caches.
constexpr int64_t kLarge = expr::kStreamBytes / 4;

// True for ops whose plain form below equals the loops bit for bit.
constexpr bool is_plain(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kSub || op == BinaryOp::kMul ||
         op == BinaryOp::kDiv;
}

template <BinaryOp kOp>
float plain(float a, float b) {
  if constexpr (kOp == BinaryOp::kAdd) return a + b;
  if constexpr (kOp == BinaryOp::kSub) return a - b;
  if constexpr (kOp == BinaryOp::kMul) return a * b;
  return a / b;
}

// One operand has the result's shape and the other is broadcast.
bool spread_binary(const BinaryLoops& loops, const View& a, const View& b,
                   const View& y) {
  const float *x = a.as<float>(), *z = b.as<float>();
  float* out = y.as<float>();
  const int64_t n = y.size();
  if (n == 0) return true;
  const bool right = a.size() == n;
  if (!right && b.size() != n) return false;
  const Spread s = spread_of(right ? *b.shape : *a.shape, *y.shape);
  const int64_t block = s.rows * s.cols;
  switch (s.kind) {
    case Spread::Kind::kSame:
      loops.same(x, z, out, n);
      return true;
    case Spread::Kind::kScalar:
      if (right) {
        loops.scalar_right(x, *z, out, n);
      } else {
        loops.scalar_left(*x, z, out, n);
      }
      return true;
    case Spread::Kind::kRows:
      for (int64_t o = 0; o < s.outer; ++o, out += block) {
        if (right) {
          loops.row_right(x + o * block, z + o * s.cols, out, s.rows, s.cols);
        } else {
          loops.row_left(x + o * s.cols, z + o * block, out, s.rows, s.cols);
        }
      }
      return true;
    case Spread::Kind::kCols:
      for (int64_t r = 0; r < s.rows; ++r, out += s.cols) {
        if (right) {
          loops.scalar_right(x + r * s.cols, z[r], out, s.cols);
        } else {
          loops.scalar_left(x[r], z + r * s.cols, out, s.cols);
        }
      }
      return true;
    case Spread::Kind::kOther:
      break;
  }
  return false;
}

template <BinaryOp kOp>
void binary(const KernelCall& c) {
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  const int64_t n = out.size();
  const float *x = a.as<float>(), *z = b.as<float>();
  float* y = out.as<float>();
  if (n >= kLarge && run_single(c)) return;
  if (*a.shape == *b.shape) [[likely]] {
    if (is_plain(kOp) && n < kTiny) {
      for (int64_t i = 0; i < n; ++i) y[i] = plain<kOp>(x[i], z[i]);
    } else {
      binary_loops(kOp).same(x, z, y, n);
    }
    return;
  }
  if (is_plain(kOp) && n < kTiny && b.size() == 1 && a.size() == n) {
    const float scalar = *z;
    for (int64_t i = 0; i < n; ++i) y[i] = plain<kOp>(x[i], scalar);
    return;
  }
  if (spread_binary(binary_loops(kOp), a, b, out) || run_single(c)) return;
  run_reference(c);
}

template <UnaryOp kOp>
void unary(const KernelCall& c) {
  if (c.out[0].size() >= kLarge && run_single(c)) return;
  unary_loop(kOp)(c.in[0].as<float>(), c.out[0].as<float>(), c.out[0].size());
}

void gelu(const KernelCall& c) {
  return c.attr<bool>("approximate") ? unary<UnaryOp::kGeluTanh>(c)
                                     : unary<UnaryOp::kGeluErf>(c);
}

// max(x, alpha x) where that is the same.
void leaky_relu(const KernelCall& c) {
  const auto alpha = static_cast<float>(c.attr<double>("alpha"));
  if (!(alpha > 0 && alpha <= 1)) return run_reference(c);
  constexpr int64_t kBlock = 1024;
  float scaled[kBlock];
  const float* x = c.in[0].as<float>();
  float* y = c.out[0].as<float>();
  for (int64_t at = 0, n = c.out[0].size(); at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    binary_loops(BinaryOp::kMul).scalar_right(x + at, alpha, scaled, m);
    binary_loops(BinaryOp::kMax).same(x + at, scaled, y + at, m);
  }
}

void gelu_grad(const KernelCall& c) {
  const BinaryLoops& loops =
      binary_loops(c.attr<bool>("approximate") ? BinaryOp::kGeluTanhGrad
                                               : BinaryOp::kGeluErfGrad);
  if (!spread_binary(loops, c.in[1], c.in[0], c.out[0])) run_reference(c);
}

}  // namespace

void add_elementwise(KernelTable& t) {
  const auto add = [&](const char* op, DirectKernel kernel) {
    t.direct(op, kFloat32, kernel, "loops", true);
  };
  add("AddV2", &binary<BinaryOp::kAdd>);
  add("Sub", &binary<BinaryOp::kSub>);
  add("Mul", &binary<BinaryOp::kMul>);
  add("RealDiv", &binary<BinaryOp::kDiv>);
  add("Maximum", &binary<BinaryOp::kMax>);
  add("Minimum", &binary<BinaryOp::kMin>);
  add("BiasAdd", &binary<BinaryOp::kAdd>);
  add("ReluGrad", &binary<BinaryOp::kReluGrad>);
  add("GeluGrad", &gelu_grad);
  add("Relu", &unary<UnaryOp::kRelu>);
  add("Gelu", &gelu);
  add("LeakyRelu", &leaky_relu);
  add("Sigmoid", &unary<UnaryOp::kSigmoid>);
  add("Tanh", &unary<UnaryOp::kTanh>);
  add("Exp", &unary<UnaryOp::kExp>);
  add("Log", &unary<UnaryOp::kLog>);
  add("Sqrt", &unary<UnaryOp::kSqrt>);
  add("Rsqrt", &unary<UnaryOp::kRsqrt>);
  add("Neg", &unary<UnaryOp::kNeg>);
  add("Abs", &unary<UnaryOp::kAbs>);
  add("Square", &unary<UnaryOp::kSquare>);
}

}  // namespace berth::cpu
