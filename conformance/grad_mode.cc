// Modes grad and grad2: GradientTape on the device under test against central
// differences. The first order differentiates the reference kernels in double
// precision; the second differentiates the first.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "berth/device.h"
#include "berth/gradient_tape.h"
#include "berth/ops/math.h"
#include "conformance/device_run.h"
#include "conformance/host_run.h"
#include "conformance/modes.h"

namespace berth::conformance {

namespace {

constexpr int64_t kMaxElements = 48;  // differentiated per input

bool has_gradient(const Case& c, const Array& in, size_t i) {
  return is_inexact(in.dtype()) && c.inputs[i].no_gradient.empty();
}

// Weights of a random projection of the first `flow` outputs (-1: all), away
// from 0; empty for whole numbers.
Arrays weights_for(const Case& c, const std::vector<OutSpec>& outputs, int flow,
                   const char* purpose) {
  Arrays weights;
  Random random(c.name() + purpose);
  for (const OutSpec& o : outputs) {
    const bool flows = flow < 0 || weights.size() < static_cast<size_t>(flow);
    if (!is_inexact(o.dtype) || !flows) {
      weights.emplace_back();
      continue;
    }
    Array w(o.dtype, o.shape);
    for (int64_t i = 0; i < w.parts(); ++i) {
      const double v = random.uniform(0.5, 1.5);
      w.set(i, random.word() % 2 ? v : -v);
    }
    weights.push_back(std::move(w));
  }
  return weights;
}

// sum of weights * outputs, its real part, on the oracle.
double project(const Arrays& outputs, const Arrays& weights) {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (weights[i].dtype() == DType::kInvalid) continue;
    // The real part of the product of complex numbers.
    const bool complex = is_complex(outputs[i].dtype());
    for (int64_t e = 0; e < weights[i].parts() && e < outputs[i].parts(); ++e) {
      const double sign = complex && e % 2 ? -1 : 1;
      sum += sign * weights[i].at(e) * outputs[i].at(e);
    }
  }
  return sum;
}

// That sum on the device; empty when no value has a weight.
Tensor project(const Tensors& outputs, const Tensors& weights) {
  Tensor sum;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !weights[i].defined()) continue;
    const Tensor part = math::reduce_sum(math::real(outputs[i] * weights[i]));
    // Statistics of 16 bits are float32.
    sum = sum.defined() ? sum + math::cast(part, sum.dtype()) : part;
  }
  return sum;
}

Tensors tensors_of(const Arrays& arrays) {
  Tensors tensors;
  for (const Array& a : arrays) {
    const bool none = a.dtype() == DType::kInvalid;
    tensors.push_back(none ? Tensor() : to_device(a));
  }
  return tensors;
}

// Elements to differentiate: all, or a fixed choice of many.
std::vector<int64_t> elements_of(const Case& c, const Array& a) {
  std::vector<int64_t> list;
  Random random(c.name() + "elements");
  for (int64_t i = 0; i < std::min(a.parts(), kMaxElements); ++i) {
    const auto n = static_cast<uint64_t>(a.parts());
    list.push_back(a.parts() <= kMaxElements
                       ? i
                       : static_cast<int64_t>(random.word() % n));
  }
  return list;
}

// Central difference of `fn` along element e of in[i].
double slope(double step, const std::function<double(const Arrays&)>& fn,
             Arrays* in, size_t i, int64_t e) {
  Array& a = (*in)[i];
  const double x = a.at(e), h = step * std::max(1.0, std::fabs(x));
  a.set(e, x + h);
  const double up = fn(*in), high = a.at(e);
  a.set(e, x - h);
  const double down = fn(*in), low = a.at(e);
  a.set(e, x);
  return (up - down) / (high - low);
}

double largest(const Array& a) {
  double m = 0;
  for (int64_t i = 0; i < a.parts(); ++i) m = std::max(m, std::fabs(a.at(i)));
  return m;
}

// Compares a gradient with the slopes of `fn`, at the scale of the gradient.
void expect_slopes(const Case& c, const std::string& what,
                   const std::function<double(const Arrays&)>& fn, Arrays* in,
                   size_t i, const Tensor& gradient, double tolerance) {
  Array got((*in)[i].dtype(), (*in)[i].shape());
  for (int64_t e = 0; e < got.parts(); ++e) got.set(e, 0);
  if (gradient.defined()) {
    ASSERT_EQ(gradient.shape(), got.shape()) << what;
    got = to_host(gradient);
  }
  int bad = 0;
  for (const int64_t e : elements_of(c, got)) {
    const double want = slope(c.step, fn, in, i, e);
    const double scale = std::max({1.0, std::fabs(want), largest(got)});
    if (std::fabs(got.at(e) - want) <= tolerance * scale) continue;
    if (++bad > 3) continue;
    ADD_FAILURE() << fmt::format(
        "{} element {}: the tape says {}{:.9g}, differences {:.9g}", what, e,
        gradient.defined() ? "" : "nothing, that is ", got.at(e), want);
  }
  EXPECT_EQ(bad, 0) << what;
}

Arrays to_double(const Arrays& in) {
  Arrays out;
  for (const Array& a : in) {
    const DType wide = a.dtype() == complex64   ? complex128
                       : is_floating(a.dtype()) ? float64
                                                : a.dtype();
    out.push_back(a.converted(wide));
  }
  return out;
}

// Inputs that are differentiated, with what a tape needs.
struct Sources {
  std::vector<size_t> places;
  std::vector<Source> list;
};

Sources watch(GradientTape* tape, const Case& c, const Arrays& in,
              const Tensors& args) {
  Sources s;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!has_gradient(c, in[i], i)) continue;
    s.places.push_back(i);
    s.list.push_back(args[i]);
    if (!c.inputs[i].variable) tape->watch(args[i]);
  }
  return s;
}

}  // namespace

void grad_case(const Case& c, DType dtype) {
  const AttrsRef attrs = c.attrs_for(dtype);
  const Arrays in = make_inputs(c, dtype);
  const Arrays weights = weights_for(c, infer_on_host(host_call(c, attrs), in),
                                     c.gradient_outputs, "weights");
  const Tensors args = to_device(c, in);
  const auto on = berth::device(device_under_test().str());
  GradientTape tape;
  const Sources sources = watch(&tape, c, in, args);
  const Tensor target =
      project(call_on_device(c.def(), args, attrs.get()), tensors_of(weights));
  ASSERT_TRUE(target.defined()) << "no output is floating";
  const Tensors gradients = tape.gradient(target, sources.list);
  Arrays wide = to_double(in);
  const DType wide_dtype = is_complex(dtype) ? complex128 : float64;
  const Case& of = c;
  const bool wide_run = dtype == float64 || dtype == complex128;
  const double tolerance = wide_run            ? 1e-6
                           : dtype == bfloat16 ? 6e-2
                           : dtype == float16  ? 1e-2
                                               : c.gradient_tolerance;
  const auto value = [&](Arrays x) {
    rederive(of, &x);
    return project(run_oracle(of, wide_dtype, x).outputs, weights);
  };
  for (size_t s = 0; s < sources.places.size(); ++s) {
    const size_t i = sources.places[s];
    expect_slopes(c, fmt::format("gradient of input {}", i), value, &wide, i,
                  gradients[s], tolerance);
  }
}

namespace {

// M = sum(u * d(sum(w * f(x)))/dx): a function of x and w whose gradient is
// the second derivative, contracted twice.
struct SecondOrder {
  const Case& c;
  AttrsRef attrs;
  Arrays u;  // one per input; weight of its gradient

  // Computes M from tensors; also differentiable by an outer tape.
  Tensor value(const Tensors& args, const Arrays& in, const Tensors& w) const {
    GradientTape tape;
    const Sources sources = watch(&tape, c, in, args);
    const Tensor target =
        project(call_on_device(c.def(), args, attrs.get()), w);
    const Tensors gradients = tape.gradient(target, sources.list);
    Tensors of(in.size()), weights = tensors_of(u);
    for (size_t s = 0; s < gradients.size(); ++s) {
      of[sources.places[s]] = gradients[s];
    }
    return project(of, weights);
  }
};

}  // namespace

void grad2_case(const Case& c, DType dtype) {
  SecondOrder second{c, c.attrs_for(dtype), {}};
  const Arrays in = make_inputs(c, dtype);
  const Arrays weights =
      weights_for(c, infer_on_host(host_call(c, second.attrs), in),
                  c.gradient_outputs, "weights");
  std::vector<OutSpec> like;
  for (const Array& a : in) like.push_back({a.dtype(), a.shape()});
  second.u = weights_for(c, like, -1, "second");
  const auto on = berth::device(device_under_test().str());

  const Tensors args = to_device(c, in), w = tensors_of(weights);
  GradientTape outer;
  Sources sources = watch(&outer, c, in, args);
  for (size_t i = 0; i < w.size(); ++i) {
    if (!w[i].defined()) continue;
    outer.watch(w[i]);
    sources.list.push_back(w[i]);
    sources.places.push_back(in.size() + i);
  }
  const Tensor m = second.value(args, in, w);
  ASSERT_TRUE(m.defined()) << "the first gradient is empty";
  const Tensors gradients = outer.gradient(m, sources.list);

  Arrays all = in;  // then the weights, which are the incoming gradients
  all.insert(all.end(), weights.begin(), weights.end());
  const auto value = [&](const Arrays& x) {
    const auto split = x.begin() + static_cast<ptrdiff_t>(in.size());
    Arrays now(x.begin(), split);
    rederive(c, &now);
    return second
        .value(to_device(c, now), now, tensors_of(Arrays(split, x.end())))
        .item<double>();
  };
  for (size_t s = 0; s < sources.places.size(); ++s) {
    const size_t i = sources.places[s];
    const bool incoming = i >= in.size();
    expect_slopes(c,
                  incoming
                      ? fmt::format("second gradient of dy {}", i - in.size())
                      : fmt::format("second gradient of input {}", i),
                  value, &all, i, gradients[s], 1e-6);
  }
}

}  // namespace berth::conformance
