#include "conformance/programs/random_program.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "berth/device.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"

namespace berth::conformance {

Dice::Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 12345) {
  below(2);
}

int64_t Dice::below(int64_t n) {  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<int64_t>((z ^ (z >> 31)) >> 1) % n;
}

double Dice::real() { return static_cast<double>(below(20001)) / 1e4 - 1.0; }

namespace {

constexpr double kMaxBound = 50;          // of a value's magnitude
constexpr int64_t kMaxElements = 20'000;  // larger ones are summed

struct Value {
  Tensor t;
  double bound = 1;  // of the magnitude of its elements
};

Tensor random_tensor(Dice& dice, const Shape& shape, DType dtype) {
  std::vector<double> v(static_cast<size_t>(shape.num_elements()));
  for (double& x : v) x = dice.real();
  return math::cast(constant(v, shape), dtype);
}

bool broadcasts(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t x = a[a.rank() - i], y = b[b.rank() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

bool floating(const Tensor& t) { return is_floating(t.dtype()); }

class Runner {
 public:
  Runner(const Program& program, const World& world, const Tensors& inputs)
      : p_(program),
        world_(world),
        inputs_(inputs),
        dice_(program.seed),
        devices_(program.device_seed) {
    for (const Tensor& t : inputs) pool_.push_back({t, 1});
  }

  Tensors run() {
    for (int i = 0; i < p_.length; ++i) one();
    Tensors out;
    for (int64_t n = 1 + dice_.below(4); n > 0; --n) out.push_back(any().t);
    if (dice_.chance(20)) out.push_back(out[0]);
    if (dice_.chance(20)) out.push_back(inputs_[0]);
    return out;
  }

 private:
  using Step = void (Runner::*)();
  using Wanted = std::function<bool(const Tensor&)>;

  // A step that finds no operands does nothing.
  void one() {
    static constexpr Step kSteps[] = {
        &Runner::binary,  &Runner::binary,    &Runner::binary, &Runner::unary,
        &Runner::unary,   &Runner::unary,     &Runner::scalar, &Runner::reduce,
        &Runner::product, &Runner::product,   &Runner::turn,   &Runner::reform,
        &Runner::part,    &Runner::part,      &Runner::join,   &Runner::pile,
        &Runner::softmax, &Runner::pick_rows, &Runner::widen,  &Runner::image,
        &Runner::choose,  &Runner::convert,   &Runner::read,   &Runner::read,
        &Runner::write,   &Runner::write,     &Runner::write,  &Runner::tape,
        &Runner::loss};
    static constexpr const char* kDevices[] = {"", "/CPU:0", "/GPU:0",
                                               "/GPU:1"};
    std::optional<DeviceGuard> on;
    const int64_t device = p_.device_seed ? devices_.below(4) : 0;
    if (device > 0) on.emplace(kDevices[device], Site::here());
    if (p_.control && control_depth_ < 2 && dice_.chance(15)) {
      return dice_.chance(50) ? branch() : loop();
    }
    (this->*kSteps[dice_.below(std::size(kSteps))])();
  }

  void push(Tensor t, double bound) {
    if (t.num_elements() > kMaxElements) {
      t = math::reduce_mean(math::cast(t, p_.dtype));
    }
    if (floating(t) && bound > kMaxBound) {
      t = math::tanh(t);
      bound = 1;
    }
    pool_.push_back({t, bound});
  }

  // Recent values more often.
  const Value& any() {
    const auto n = static_cast<int64_t>(pool_.size());
    const int64_t back = dice_.chance(50) ? std::min<int64_t>(n, 5) : n;
    return pool_[static_cast<size_t>(n - 1 - dice_.below(back))];
  }
  std::optional<Value> find(const Wanted& wanted) {
    for (int tries = 0; tries < 12; ++tries) {
      const Value& v = any();
      if (wanted(v.t)) return v;
    }
    return std::nullopt;
  }
  std::optional<Value> find_floating(int rank = -1) {
    return find([&](const Tensor& t) {
      return floating(t) && (rank < 0 || t.rank() == rank);
    });
  }
  std::optional<Value> find_array() {
    return find([](const Tensor& t) { return t.rank() > 0; });
  }

  void binary() {
    const auto a = find([](const Tensor& t) { return t.dtype() != bool_; });
    if (!a) return;
    const auto b = find([&](const Tensor& t) {
      return t.dtype() == a->t.dtype() && broadcasts(t.shape(), a->t.shape());
    });
    if (!b) return;
    const double x = a->bound, y = b->bound;
    switch (dice_.below(7)) {
      case 0:
        return push(a->t + b->t, x + y);
      case 1:
        return push(a->t - b->t, x + y);
      case 2:
        return push(a->t * b->t, x * y);
      case 3:
        return push(math::maximum(a->t, b->t), std::max(x, y));
      case 4:
        return push(math::minimum(a->t, b->t), std::max(x, y));
      case 5:
        return push(math::squared_difference(a->t, b->t), (x + y) * (x + y));
      default:
        if (floating(a->t)) push(a->t / (math::square(b->t) + 0.7), 2 * x);
    }
  }

  void unary() {
    const auto v = find_floating();
    if (!v) return;
    const Tensor& x = v->t;
    switch (dice_.below(13)) {
      case 0:
        return push(math::tanh(x), 1);
      case 1:
        return push(math::sigmoid(x), 1);
      case 2:
        return push(nn::relu(x), v->bound);
      case 3:
        return push(math::negative(x), v->bound);
      case 4:
        return push(math::square(x), v->bound * v->bound);
      case 5:
        return push(math::exp(math::tanh(x)), 3);
      case 6:
        return push(math::sqrt(math::square(x) + 0.5), v->bound + 1);
      case 7:
        return push(nn::gelu(x, {.approximate = dice_.chance(50)}), v->bound);
      case 8:
        return push(identity(x), v->bound);
      case 9:
        return push(stop_gradient(x), v->bound);
      case 10:
        return push(zeros_like(x), 0);
      case 11:
        return push(math::abs(x), v->bound);
      default:
        push(math::log(math::square(x) + 1.5), v->bound + 1);
    }
  }

  // Neutral and absorbing numbers give the algebra pass something to do.
  void scalar() {
    const auto v = find_floating();
    if (!v) return;
    const double c = dice_.real() + 0.1;
    const Tensor all[] = {v->t * c, v->t + 0.0, v->t * 1.0,
                          c - v->t, v->t * 0.0, v->t / 2.5};
    push(all[dice_.below(std::size(all))], v->bound + 2);
  }

  void reduce() {
    const Value v = any();
    if (v.t.dtype() == bool_) {
      return push(
          dice_.chance(50) ? math::reduce_all(v.t) : math::reduce_any(v.t), 1);
    }
    math::ReduceOptions options{.keepdims = dice_.chance(40)};
    if (v.t.rank() > 0 && dice_.chance(70)) {
      std::vector<int64_t>& axes = options.axis.emplace();
      for (int i = 0; i < v.t.rank(); ++i) {
        if (dice_.chance(50)) axes.push_back(i - (i % 2 ? v.t.rank() : 0));
      }
    }
    const int64_t kind = dice_.below(4);
    const auto n = static_cast<double>(v.t.num_elements());
    if (kind == 0) return push(math::reduce_max(v.t, options), v.bound);
    if (kind == 1) return push(math::reduce_min(v.t, options), v.bound);
    if (kind == 2 && floating(v.t)) {
      return push(math::reduce_mean(v.t, options), v.bound);
    }
    push(math::reduce_sum(v.t, options), v.bound * n);
  }

  void product() {
    const MatMulOptions options{.transpose_a = dice_.chance(40),
                                .transpose_b = dice_.chance(40)};
    const auto a = find_floating(2);
    if (!a) return;
    const int64_t k = a->t.shape()[options.transpose_a ? 0 : 1];
    const auto b = find([&](const Tensor& t) {
      return t.dtype() == a->t.dtype() && t.rank() == 2 &&
             t.shape()[options.transpose_b ? 1 : 0] == k;
    });
    if (!b) return;
    push(matmul(a->t, b->t, options),
         a->bound * b->bound * static_cast<double>(k));
  }

  void turn() {
    const Value v = any();
    std::vector<int64_t> perm(static_cast<size_t>(v.t.rank()));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    for (size_t i = perm.size(); i-- > 1;) {
      std::swap(perm[i], perm[static_cast<size_t>(dice_.below(i + 1))]);
    }
    push(transpose(v.t, perm), v.bound);
  }

  void reform() {
    const Value v = any();
    const int64_t cut = 1 + dice_.below(5);
    switch (dice_.below(4)) {
      case 0:
        return push(reshape(v.t, {-1}), v.bound);
      case 1:
        if (v.t.rank() == kMaxRank) return;
        return push(expand_dims(v.t, dice_.below(v.t.rank() + 1)), v.bound);
      case 2:
        return push(squeeze(v.t), v.bound);
      default:
        if (v.t.num_elements() % cut == 0) {
          push(reshape(v.t, {cut, -1}), v.bound);
        }
    }
  }

  // Aliases, mostly: indices and ranges with steps of either sign.
  void part() {
    const auto v = find_array();
    if (!v) return;
    const int64_t n = v->t.shape()[0];
    Index at(dice_.below(2 * n) - n);
    switch (dice_.below(4)) {
      case 0:
        at = slice(dice_.below(n), std::nullopt, 1 + dice_.below(3));
        break;
      case 1:
        at = slice(std::nullopt, std::nullopt, -1 - dice_.below(2));
        break;
      case 2:
        at = slice(std::nullopt, 1 + dice_.below(n));
        break;
      default:
        break;
    }
    if (v->t.rank() == 1 || dice_.chance(50)) return push(v->t[{at}], v->bound);
    push(v->t[{at, slice(dice_.below(v->t.shape()[1]), std::nullopt, 2)}],
         v->bound);
  }

  void join() {
    const auto v = find_array();
    if (!v || v->t.num_elements() > 2000) return;
    const int64_t axis = dice_.below(v->t.rank());
    const auto other = find([&](const Tensor& t) {
      if (t.dtype() != v->t.dtype() || t.rank() != v->t.rank()) return false;
      Shape a = t.shape(), b = v->t.shape();
      a[static_cast<int>(axis)] = b[static_cast<int>(axis)] = 1;
      return a == b;
    });
    Tensors parts{v->t, other ? other->t : v->t};
    if (dice_.chance(30)) parts.push_back(v->t);
    push(concat(parts, axis), std::max(v->bound, other ? other->bound : 0));
  }

  void pile() {
    const auto v = find_array();
    if (!v || v->t.rank() > 5 || v->t.num_elements() > 2000) return;
    if (dice_.chance(50)) {
      return push(stack({v->t, v->t}, dice_.below(v->t.rank() + 1)), v->bound);
    }
    const Tensors parts = unstack(v->t, dice_.below(v->t.rank()));
    push(parts.front(), v->bound);
    push(parts.back(), v->bound);
  }

  void softmax() {
    const auto v = find_floating();
    if (!v || v->t.rank() == 0) return;
    push(dice_.chance(50) ? nn::softmax(v->t, dice_.below(v->t.rank()))
                          : nn::log_softmax(v->t),
         2 * v->bound + 10);
  }

  void pick_rows() {
    const auto v = find_array();
    if (!v) return;
    const int64_t axis = dice_.below(v->t.rank());
    std::vector<int64_t> rows(static_cast<size_t>(1 + dice_.below(4)));
    for (int64_t& r : rows) {
      r = dice_.below(v->t.shape()[static_cast<int>(axis)]);
    }
    const auto n = static_cast<int64_t>(rows.size());
    push(gather(v->t, constant(rows, {n}), axis), v->bound);
  }

  void widen() {
    const auto v = find_array();
    if (!v || v->t.num_elements() > 500) return;
    std::vector<int64_t> multiples, paddings;
    for (int i = 0; i < v->t.rank(); ++i) {
      multiples.push_back(1 + dice_.below(2));
      paddings.push_back(dice_.below(3));
      paddings.push_back(dice_.below(3));
    }
    push(dice_.chance(50) ? tile(v->t, multiples) : pad(v->t, paddings),
         v->bound);
  }

  void image() {
    const auto v = find_floating(4);
    if (!v || v->t.num_elements() > 4000) return;
    const Shape& s = v->t.shape();
    const bool small = s[1] < 3 || s[2] < 3;
    const std::string padding = small || dice_.chance(50) ? "SAME" : "VALID";
    const int64_t stride = 1 + dice_.below(2);
    if (dice_.chance(50)) {
      const nn::PoolOptions options{
          .ksize = {2}, .strides = {stride}, .padding = padding};
      return push(dice_.chance(50) ? nn::max_pool2d(v->t, options)
                                   : nn::avg_pool2d(v->t, options),
                  v->bound);
    }
    const Shape filter{1 + dice_.below(3), 1 + dice_.below(3), s[3],
                       1 + dice_.below(4)};
    push(nn::conv2d(v->t, random_tensor(dice_, filter, v->t.dtype()),
                    {.strides = {stride}, .padding = padding}),
         v->bound * static_cast<double>(9 * s[3]));
  }

  void choose() {
    const auto v = find_floating();
    if (!v) return;
    const Tensor mask = random_tensor(dice_, v->t.shape(), float64) > 0.2;
    push(where(mask, v->t, v->t * 0.5), v->bound);
  }

  // Only float64 is compared or made whole: in float32 rounding would decide.
  void convert() {
    const Value v = any();
    if (!floating(v.t)) {
      return push(math::tanh(math::cast(v.t, p_.dtype)), 1);
    }
    if (p_.dtype == float32) {
      return push(math::cast(math::cast(v.t, float64) * 2.0, float32),
                  2 * v.bound);
    }
    if (dice_.chance(50)) return push(v.t > 0.31234567, 1);
    push(math::cast(v.t * 3.0 + 0.0123456789, int32), 3 * v.bound + 1);
  }

  void read() {
    const auto n = static_cast<int64_t>(world_.variables.size());
    push(world_.variables[static_cast<size_t>(dice_.below(n))].value(), 3);
  }

  void write() {
    if (!p_.writes) return;
    const auto n = static_cast<int64_t>(world_.variables.size());
    const Variable& v = world_.variables[static_cast<size_t>(dice_.below(n))];
    auto value = find([&](const Tensor& t) { return t.dtype() == v.dtype(); });
    if (!value) return;
    const Tensor& t = value->t;
    const Tensor fitting = t.shape() == v.shape()
                               ? t
                               : broadcast_to(math::reduce_mean(t), v.shape());
    const int64_t kind = dice_.below(4);
    if (kind == 0) v.assign(fitting);
    if (kind == 1) v.assign_add(math::tanh(fitting) * 0.3);
    if (kind == 2) v.assign_sub(math::tanh(fitting) * 0.3);
    v.assign(math::tanh(kind == 3 ? fitting : v.value()));
  }

  void loss() {
    const auto v = find_floating(2);
    if (!v) return;
    const int64_t n = v->t.shape()[0], classes = v->t.shape()[1];
    std::vector<int64_t> labels(static_cast<size_t>(n));
    for (int64_t& l : labels) l = dice_.below(classes);
    const Tensor y = constant(labels, {n});
    const Tensor hot = one_hot(y, classes, {.dtype = v->t.dtype()});
    push(dice_.chance(50)
             ? nn::sparse_softmax_cross_entropy_with_logits(y, v->t)
             : nn::softmax_cross_entropy_with_logits(hot, v->t),
         2 * v->bound + 5);
  }

  // A few steps under a tape, then gradients by inputs, variables and a value
  // on the way.
  void tape() {
    if (!p_.tapes || depth_ == 2) return;
    ++depth_;
    GradientTape tape({.persistent = dice_.chance(20)});
    std::vector<Source> sources(inputs_.begin(), inputs_.end());
    if (const auto v = find_floating()) sources.push_back(v->t);
    for (const Source& s : sources) tape.watch(s.tensor());
    for (const Variable& v : world_.variables) sources.push_back(v);
    for (int64_t i = 2 + dice_.below(8); i > 0; --i) one();
    --depth_;
    const auto target = find_floating();
    if (!target) return;
    GradientOptions options;
    if (dice_.chance(30) || p_.control) {
      options.unconnected_gradients = UnconnectedGradients::kZero;
    }
    for (const Tensor& t : tape.gradient(target->t, sources, options)) {
      if (t.defined()) push(math::tanh(t), 1);
    }
  }

  // Runs a few steps whose values are gone afterwards; returns one that
  // depends on some of them, of the shape of `like`. Equal seeds do the same.
  Tensor inside(uint64_t seed, int64_t steps, const Tensor& like) {
    const std::vector<Value> pool = pool_;
    const Dice dice = std::exchange(dice_, Dice(seed));
    const Dice devices = std::exchange(devices_, Dice(p_.device_seed + seed));
    const int depth = std::exchange(depth_, 1);
    ++control_depth_;
    pool_.push_back({like, 1});
    for (int64_t i = steps; i > 0; --i) one();
    const auto v = find_floating();
    const Tensor scalar = math::tanh(math::reduce_mean(v ? v->t : like));
    --control_depth_;
    pool_ = pool;
    dice_ = dice;
    devices_ = devices;
    depth_ = depth;
    return math::tanh(like * 0.7 + scalar);
  }

  // A predicate that no rounding changes.
  Tensor predicate() {
    const auto n = static_cast<int64_t>(inputs_.size());
    return math::reduce_max(inputs_[static_cast<size_t>(dice_.below(n))]) >
           dice_.real() * 0.9 + 0.0123456789;
  }

  void branch() {
    const auto v = find_floating();
    if (!v) return;
    const auto seed = static_cast<uint64_t>(dice_.below(1 << 20));
    const int64_t steps = dice_.below(6);
    const bool empty = dice_.chance(20);
    const Tensor pred = predicate();
    push(cond(
             pred, [&] { return inside(seed, steps, v->t); },
             [&] {
               return empty ? identity(v->t) : inside(seed + 1, steps, v->t);
             }),
         std::max(1.0, v->bound));
  }

  void loop() {
    const auto v = find_floating();
    if (!v || v->t.num_elements() > 2000) return;
    const auto seed = static_cast<uint64_t>(dice_.below(1 << 20));
    const int64_t turns = dice_.below(4), steps = dice_.below(5);
    const Tensor pred = predicate();
    const int64_t most = turns + dice_.below(3) - 1;
    const auto [i, x, y] = while_loop(
        [&](const Tensor& i, const Tensor&, const Tensor&) {
          return math::logical_and(i < static_cast<double>(turns), pred);
        },
        [&](const Tensor& i, const Tensor& x, const Tensor& y) {
          return std::tuple(i + 1, inside(seed, steps, x), x * 0.5 + y * 0.1);
        },
        std::tuple(constant(int64_t{0}), v->t, v->t),
        {.max_iterations = std::max<int64_t>(most, 0)});
    // Without a turn x is v itself; a loop of a trace returns another tensor.
    push(identity(x), std::max(1.0, v->bound));
    if (dice_.chance(30)) push(identity(y), v->bound * 2);
  }

  const Program& p_;
  const World& world_;
  const Tensors& inputs_;
  Dice dice_, devices_;
  std::vector<Value> pool_;
  int depth_ = 0;          // of tapes
  int control_depth_ = 0;  // of branches and loops
};

}  // namespace

World make_world(const Program& program) {
  Dice dice(program.seed + 77);
  World w;
  const int64_t a = 1 + dice.below(5), b = 1 + dice.below(6);
  const Shape shapes[] = {
      {a, b}, {b}, {2, 5, 6, 3}, {}, {b, 1 + dice.below(4)}};
  for (const Shape& s : shapes) {
    w.inputs.push_back(random_tensor(dice, s, program.dtype));
  }
  for (int64_t n = 1 + dice.below(3); n > 0; --n) {
    const Shape& s = shapes[dice.below(2)];
    w.variables.emplace_back(random_tensor(dice, s, program.dtype));
  }
  return w;
}

Tensors run_program(const Program& program, const World& world,
                    const Tensors& inputs) {
  return Runner(program, world, inputs).run();
}

}  // namespace berth::conformance
