#include "conformance/case.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "conformance/ops/families.h"

namespace berth::conformance {

Input Input::uniform(double lo, double hi) const {
  Input i = *this;
  i.fill = Fill::kUniform;
  i.low = lo;
  i.high = hi;
  return i;
}
Input Input::not_zero() const {
  Input i = *this;
  i.fill = Fill::kNotZero;
  return i;
}
Input Input::distinct() const {
  Input i = *this;
  i.fill = Fill::kDistinct;
  return i;
}
Input Input::whole(double lo, double hi, DType d) const {
  Input i = uniform(lo, hi);
  i.fill = Fill::kWhole;
  i.dtype = d;
  return i;
}
Input Input::boolean() const { return whole(0, 1, bool_); }
Input Input::special() const {
  Input i = *this;
  i.fill = Fill::kSpecial;
  return i;
}
Input Input::shares() const {
  Input i = *this;
  i.fill = Fill::kShares;
  return i;
}
Input Input::of(std::vector<double> v) const {
  Input i = *this;
  i.fill = Fill::kValues;
  i.values = std::move(v);
  return i;
}
Input Input::derived(Derive d) const {
  Input i = *this;
  i.fill = Fill::kDerived;
  i.derive = std::move(d);
  i.no_gradient = "follows other inputs";
  return i;
}
Input Input::as(DType d) const {
  Input i = *this;
  i.dtype = d;
  return i;
}
Input Input::as_variable() const {
  Input i = *this;
  i.variable = true;
  return i;
}
Input Input::without_gradient(std::string why) const {
  Input i = *this;
  i.no_gradient = std::move(why);
  return i;
}

Case& Case::input(Input i) {
  inputs.push_back(std::move(i));
  return *this;
}
Case& Case::attr(std::string name, AttrValue value) {
  attrs.push_back({std::move(name), std::move(value)});
  return *this;
}
Case& Case::dtype_attr(std::string name) {
  dtype_attrs.push_back(std::move(name));
  return *this;
}
Case& Case::types(DTypeSet set) {
  dtypes = set;
  return *this;
}
Case& Case::close_to(double rtol, double atol) {
  tolerance = {rtol, atol};
  return *this;
}
Case& Case::skip(Mode mode, std::string why) {
  skipped[mode] = std::move(why);
  return *this;
}
Case& Case::skip_gradients(std::string why) {
  return skip(Mode::kGrad, why).skip(Mode::kGrad2, why);
}
Case& Case::step_of(double h) {
  step = h;
  return *this;
}
Case& Case::gradient_through(int outputs) {
  gradient_outputs = outputs;
  return *this;
}
Case& Case::known_dimensions_only(std::string why) {
  needs_dimensions = std::move(why);
  return *this;
}
Case& Case::perf_only() {
  perf = true;
  return *this;
}

AttrsRef Case::attrs_for(DType dtype) const {
  std::vector<Attrs::Pair> pairs = attrs;
  for (const std::string& name : dtype_attrs) pairs.push_back({name, dtype});
  return pairs.empty() ? AttrsRef() : AttrsRef(std::move(pairs));
}

std::string Case::name() const { return op + "/" + label; }

Case& Cases::add(std::string op, std::string label, std::vector<Input> inputs) {
  Case c{.op = std::move(op), .label = std::move(label)};
  c.inputs = std::move(inputs);
  bool special = false;
  for (const Input& i : c.inputs) special |= i.fill == Fill::kSpecial;
  if (special) c.skip_gradients("no differences at NaN and infinity");
  cases_.push_back(std::move(c));
  return cases_.back();
}

const Cases& all_cases() {
  static const Cases cases = [] {
    Cases c;
    add_all_cases(c);
    return c;
  }();
  return cases;
}

Random::Random(const std::string& name) : state_(0xCBF29CE484222325u) {
  for (const char ch : name) {
    state_ = (state_ ^ static_cast<unsigned char>(ch)) * 0x100000001B3u;
  }
}

uint64_t Random::word() {  // splitmix64
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
  const double unit = static_cast<double>(word() >> 11) * 0x1p-53;
  return low + (high - low) * unit;
}

namespace {

double special_value(int64_t i, DType dtype) {
  const bool wide = dtype == float64 || dtype == complex128;
  double largest = wide ? std::numeric_limits<double>::max()
                        : std::numeric_limits<float>::max();
  double smallest = wide ? std::numeric_limits<double>::min()
                         : std::numeric_limits<float>::min();
  if (dtype == bfloat16) largest = 0x1.fep127;
  if (dtype == float16) largest = 65504, smallest = 0x1p-14;
  const double inf = std::numeric_limits<double>::infinity();
  const double kinds[] = {std::nan(""), inf,      -inf,     0.0, -0.0,
                          largest,      -largest, smallest, 1.0, -1.0,
                          0.5,          100.0,    -100.0};
  return kinds[i % static_cast<int64_t>(std::size(kinds))];
}

void fill_distinct(Array* a, const Input& in, Random* random) {
  const int64_t n = a->parts();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    const auto j =
        static_cast<size_t>(random->word() % static_cast<uint64_t>(i + 1));
    std::swap(order[static_cast<size_t>(i)], order[j]);
  }
  for (int64_t i = 0; i < n; ++i) {
    const double at =
        (static_cast<double>(order[static_cast<size_t>(i)]) + 0.5) /
        static_cast<double>(n);
    a->set(i, in.low + (in.high - in.low) * at);
  }
}

void fill_shares(Array* a, Random* random) {
  const Shape& shape = a->shape();
  const int64_t row = shape.rank() ? shape[shape.rank() - 1] : 1;
  for (int64_t start = 0; start < a->size(); start += row) {
    std::vector<double> parts;
    for (int64_t i = 0; i < row; ++i) parts.push_back(random->uniform(.1, 1));
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    for (int64_t i = 0; i < row; ++i) {
      a->set(start + i, parts[static_cast<size_t>(i)] / sum);
    }
  }
}

// Binary ops see every pair: the second input runs slower than the first.
void fill_special(Array* a, int place) {
  const int64_t period = place == 0 ? 1 : 13;
  for (int64_t i = 0; i < a->parts(); ++i) {
    a->set(i, special_value(i / period, a->dtype()));
  }
}

void fill_each(Array* a, const Input& in, Random* random) {
  for (int64_t i = 0; i < a->parts(); ++i) {
    double v = random->uniform(in.low, in.high);
    if (in.fill == Fill::kNotZero) {
      while (std::fabs(v) < 0.2) v = random->uniform(in.low, in.high);
    } else if (in.fill == Fill::kWhole) {
      v = std::floor(random->uniform(in.low, in.high + 1));
      v = std::min(v, in.high);
    } else if (in.fill == Fill::kValues) {
      v = in.values[static_cast<size_t>(i) % in.values.size()];
    } else if (is_integer(a->dtype())) {
      v = std::round(v);
    }
    a->set(i, v);
  }
}

}  // namespace

Arrays make_inputs(const Case& c, DType dtype) {
  Arrays arrays;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Input& in = c.inputs[i];
    Array a(in.dtype == DType::kInvalid ? dtype : in.dtype, in.shape);
    Random random(fmt::format("{}:{}", c.name(), i));
    if (in.fill == Fill::kDerived) {
      a = in.derive(arrays);
    } else if (in.fill == Fill::kDistinct) {
      fill_distinct(&a, in, &random);
    } else if (in.fill == Fill::kShares) {
      fill_shares(&a, &random);
    } else if (in.fill == Fill::kSpecial) {
      fill_special(&a, static_cast<int>(i));
    } else {
      fill_each(&a, in, &random);
    }
    arrays.push_back(std::move(a));
  }
  return arrays;
}

void rederive(const Case& c, Arrays* in) {
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].fill != Fill::kDerived) continue;
    const Arrays before(in->begin(), in->begin() + static_cast<ptrdiff_t>(i));
    (*in)[i] = c.inputs[i].derive(before);
  }
}

}  // namespace berth::conformance
