// Ops of the catalogue as warm plans, by size: what bench/ops.py sets against
// NumPy and PyTorch. A line per op, dtype and size: `best_us`.

#include <functional>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

using Ints = std::vector<int64_t>;
using Fn = std::function<Tensor(const Tensor&, const Tensor&)>;

struct Row {
  const char* name;
  Fn fn;
};

#define UNARY(name, call)                                     \
  {                                                           \
    name, [](const Tensor& x, const Tensor&) { return call; } \
  }
#define BINARY(name, call)                                      \
  {                                                             \
    name, [](const Tensor& x, const Tensor& y) { return call; } \
  }

// In (0.5, 2.5) for floats, in [0, 1000) for whole numbers.
const Row kFloatRows[] = {
    UNARY("sin", math::sin(x)),
    UNARY("cos", math::cos(x)),
    UNARY("tan", math::tan(x)),
    UNARY("asin", math::asin(x)),
    UNARY("acos", math::acos(x)),
    UNARY("atan", math::atan(x)),
    UNARY("sinh", math::sinh(x)),
    UNARY("cosh", math::cosh(x)),
    UNARY("asinh", math::asinh(x)),
    UNARY("acosh", math::acosh(x)),
    UNARY("atanh", math::atanh(x)),
    UNARY("exp", math::exp(x)),
    UNARY("expm1", math::expm1(x)),
    UNARY("log", math::log(x)),
    UNARY("log1p", math::log1p(x)),
    UNARY("sqrt", math::sqrt(x)),
    UNARY("rsqrt", math::rsqrt(x)),
    UNARY("erf", math::erf(x)),
    UNARY("erfc", math::erfc(x)),
    UNARY("lgamma", math::lgamma(x)),
    UNARY("digamma", math::digamma(x)),
    UNARY("tanh", math::tanh(x)),
    UNARY("sigmoid", math::sigmoid(x)),
    UNARY("floor", math::floor(x)),
    UNARY("ceil", math::ceil(x)),
    UNARY("round", math::round(x)),
    UNARY("reciprocal", math::reciprocal(x)),
    UNARY("relu", nn::relu(x)),
    UNARY("gelu", nn::gelu(x)),
    UNARY("elu", nn::elu(x)),
    UNARY("selu", nn::selu(x)),
    UNARY("softplus", math::softplus(x)),
    UNARY("leaky_relu", nn::leaky_relu(x)),
    UNARY("softmax", nn::softmax(x)),
    UNARY("log_softmax", nn::log_softmax(x)),
    UNARY("is_nan", math::is_nan(x)),
    UNARY("is_finite", math::is_finite(x)),
    UNARY("cast_int32", math::cast(x, int32)),
    UNARY("cast_int64", math::cast(x, int64)),
    UNARY("reduce_mean", math::reduce_mean(x)),
    UNARY("reduce_mean_0", math::reduce_mean(x, {.axis = Ints{0}})),
    UNARY("reduce_mean_1", math::reduce_mean(x, {.axis = Ints{1}})),
    BINARY("pow", math::pow(x, y)),
    BINARY("divide", x / y),
    BINARY("atan2", math::atan2(x, y)),
};
const Row kNumberRows[] = {
    UNARY("negative", -x),
    UNARY("abs", math::abs(x)),
    UNARY("sign", math::sign(x)),
    UNARY("square", math::square(x)),
    UNARY("cast_float32", math::cast(x, float32)),
    UNARY("cast_float64", math::cast(x, float64)),
    UNARY("cast_bool", math::cast(x, bool_)),
    UNARY("reduce_sum", math::reduce_sum(x)),
    UNARY("reduce_sum_0", math::reduce_sum(x, {.axis = Ints{0}})),
    UNARY("reduce_sum_1", math::reduce_sum(x, {.axis = Ints{1}})),
    UNARY("reduce_max", math::reduce_max(x)),
    UNARY("reduce_max_0", math::reduce_max(x, {.axis = Ints{0}})),
    UNARY("reduce_max_1", math::reduce_max(x, {.axis = Ints{1}})),
    UNARY("reduce_min", math::reduce_min(x)),
    UNARY("reduce_min_0", math::reduce_min(x, {.axis = Ints{0}})),
    UNARY("reduce_min_1", math::reduce_min(x, {.axis = Ints{1}})),
    UNARY("reduce_prod_0", math::reduce_prod(x, {.axis = Ints{0}})),
    UNARY("reduce_prod_1", math::reduce_prod(x, {.axis = Ints{1}})),
    UNARY("argmax_0", math::argmax(x, {.axis = 0})),
    UNARY("argmax_1", math::argmax(x, {.axis = 1})),
    UNARY("cumsum_0", math::cumsum(x, {.axis = 0})),
    UNARY("cumsum_1", math::cumsum(x, {.axis = 1})),
    UNARY("transpose", transpose(x)),
    UNARY("reverse_1", reverse(x, Ints{1})),
    UNARY("tile", tile(x, Ints{2, 1})),
    UNARY("sort", sort(reshape(x, {-1}))),
    UNARY("sort_1", sort(x)),
    UNARY("argsort", argsort(reshape(x, {-1}))),
    UNARY("top_10", top_k(reshape(x, {-1}), 10).values),
    BINARY("add", x + y),
    BINARY("subtract", x - y),
    BINARY("multiply", x* y),
    BINARY("maximum", math::maximum(x, y)),
    BINARY("minimum", math::minimum(x, y)),
    BINARY("floordiv", math::floordiv(x, y)),
    BINARY("floormod", math::floormod(x, y)),
    BINARY("greater", x > y),
    BINARY("equal", math::equal(x, y)),
    BINARY("where", where(x > y, x, y)),
    BINARY("concat", concat({x, y}, 0)),
};
const Row kBoolRows[] = {
    UNARY("logical_not", math::logical_not(x)),
    UNARY("cast_float32", math::cast(x, float32)),
    UNARY("cast_int32", math::cast(x, int32)),
    UNARY("reduce_all", math::reduce_all(x)),
    UNARY("reduce_all_0", math::reduce_all(x, {.axis = Ints{0}})),
    UNARY("reduce_all_1", math::reduce_all(x, {.axis = Ints{1}})),
    UNARY("reduce_any_0", math::reduce_any(x, {.axis = Ints{0}})),
    BINARY("logical_and", math::logical_and(x, y)),
    BINARY("logical_or", math::logical_or(x, y)),
};

// Largest domain where each is defined: asin, acos and atanh take x / 2.6.
Tensor values(DType dtype, int64_t side, const std::string& name) {
  const Shape shape{side, side};
  if (dtype == float32) {
    const bool within = name == "asin" || name == "acos" || name == "atanh";
    const bool from_one = name == "acosh";
    return random::uniform(shape, {.minval = within     ? 0.1
                                             : from_one ? 1.1
                                                        : 0.5,
                                   .maxval = within ? 0.9 : 2.5});
  }
  const Tensor u = random::uniform(shape, {.minval = 1.0, .maxval = 1000.0});
  if (dtype == bool_) return u > 500.0f;
  return math::cast(u, dtype);
}

void time_row(const Row& row, DType dtype, int64_t side, const Args& args) {
  if (!args.model.empty() && args.model != row.name) return;
  Line line("ops", args.cores);
  line.add("op", row.name).add("dtype", name_of(dtype)).add("side", side);
  try {
    const Tensor x = values(dtype, side, row.name);
    const Tensor y = values(dtype, side, row.name);
    auto run = function(row.fn);
    line.timing(measure([&] { (void)run(x, y); }, args.seconds), "us", 1e6);
  } catch (const std::exception& e) {
    line.add("failed", e.what());
  }
  line.print();
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) {
    return skip("ops", args.cores, "fewer cores than asked for");
  }
  for (const int64_t side : {32, 1024, 3072}) {
    for (const Row& row : kFloatRows) time_row(row, float32, side, args);
    for (const DType dtype : {float32, int32, int64}) {
      for (const Row& row : kNumberRows) time_row(row, dtype, side, args);
    }
    for (const Row& row : kBoolRows) time_row(row, bool_, side, args);
  }
}
