// Making and reshaping tensors.

#include "berth/ops/array.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "op/choose_device.h"
#include "op/device_scope.h"
#include "ops/families.h"
#include "ops/in_scope.h"
#include "ops/named_call.h"
#include "tensor/string_tensor.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

// The device that a scope asks for, null: none does.
Device* asked_device(Site site) {
  const Site last = std::exchange(t_state.site, site);
  struct Restore {
    Site last;
    ~Restore() { t_state.site = last; }
  } restore{last};
  const DeviceScope* scope = t_state.scope;
  return scope && asks_for_device(&scope->name) ? scope_device("constant")
                                                : nullptr;
}

// Where a new constant lives: in a trace it stays on the host until the graph
// places it.
Tensor to_scope(const Tensor& host, Site site) {
  if (tracing()) return host;
  if (Device* device = asked_device(site)) return copy_to_device(host, *device);
  if (few_integers(host.dtype(), host.num_elements())) return host;
  return copy_to_device(host, DeviceManager::get().default_device());
}

template <class T>
Tensor constant_of(const T* values, const Shape& shape, Site site) {
  DeviceManager& devices = DeviceManager::get("constant()", site);
  Tensor t = make_tensor(devices.host(), dtype_of<T>, shape);
  if (t.num_elements() > 0) {
    std::memcpy(t.impl()->data(), values, t.impl()->size_bytes());
  }
  return to_scope(t, site);
}

}  // namespace

Tensor in_scope(const Tensor& host, Site site) {
  if (tracing() || host.is_symbolic() || host.dtype() == string_) return host;
  Device* device = asked_device(site);
  return device ? copy_to_device(host, *device) : host;
}

template <class T>
Tensor constant(std::span<const T> values, const Shape& shape, Site site) {
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
    throw errors::InvalidArgument(
        fmt::format("constant: {} values for shape {}; expected {}",
                    values.size(), shape.str(), shape.num_elements()));
  }
  using Text =
      std::conditional_t<std::is_same_v<T, const char*>, std::string, T>;
  if constexpr (std::is_same_v<Text, std::string>) {
    DeviceManager::get("constant()", site);
    return make_strings(std::vector<std::string>(values.begin(), values.end()),
                        shape);
  } else {
    return constant_of(values.data(), shape, site);
  }
}
template Tensor constant(std::span<const float>, const Shape&, Site);
template Tensor constant(std::span<const double>, const Shape&, Site);
template Tensor constant(std::span<const int32_t>, const Shape&, Site);
template Tensor constant(std::span<const int64_t>, const Shape&, Site);
template Tensor constant(std::span<const uint8_t>, const Shape&, Site);
template Tensor constant(std::span<const bool>, const Shape&, Site);
template Tensor constant(std::span<const int8_t>, const Shape&, Site);
template Tensor constant(std::span<const int16_t>, const Shape&, Site);
template Tensor constant(std::span<const uint16_t>, const Shape&, Site);
template Tensor constant(std::span<const uint32_t>, const Shape&, Site);
template Tensor constant(std::span<const uint64_t>, const Shape&, Site);
template Tensor constant(std::span<const bfloat16_t>, const Shape&, Site);
template Tensor constant(std::span<const float16_t>, const Shape&, Site);
template Tensor constant(std::span<const std::complex<float>>, const Shape&,
                         Site);
template Tensor constant(std::span<const std::complex<double>>, const Shape&,
                         Site);
template Tensor constant(std::span<const std::string>, const Shape&, Site);
template Tensor constant(std::span<const char* const>, const Shape&, Site);

Tensor detail::constant_of(std::span<const long double> values,
                           const Shape& shape, DType dtype, Site site) {
  Tensor t =
      make_tensor(DeviceManager::get("constant()", site).host(), dtype, shape);
  visit_dtype(dtype, "constant", [&]<class T>(T) {
    T* to = reinterpret_cast<T*>(t.impl()->data());
    for (const long double v : values) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        using Limits = std::numeric_limits<T>;
        if (!(v >= Limits::min() && v <= Limits::max()) || std::trunc(v) != v) {
          throw errors::InvalidArgument(fmt::format(
              "constant: {} cannot hold {}{}; expected a whole number of its "
              "range, or another dtype",
              name_of(dtype), static_cast<double>(v),
              where_text(nullptr, site)));
        }
        *to++ = static_cast<T>(v);
      } else {
        *to++ = convert_element<T>(static_cast<double>(v));
      }
    }
  });
  return to_scope(t, site);
}

Tensor constant(float v, Site site) { return constant_of(&v, {}, site); }
Tensor constant(double v, Site site) { return constant_of(&v, {}, site); }
Tensor constant(int v, Site site) { return constant_of(&v, {}, site); }
Tensor constant(int64_t v, Site site) { return constant_of(&v, {}, site); }
Tensor constant(bool v, Site site) { return constant_of(&v, {}, site); }
Tensor constant(const char* value, Site site) {
  return constant(std::span<const char* const>(&value, 1), Shape{}, site);
}

Tensor zeros_like(const Tensor& x, Site s) { return unary<"ZerosLike">(x, s); }
Tensor reshape(const Tensor& x, const Shape& shape, Site site) {
  set_site(site);
  return call1(op_of<"Reshape">(), x, AttrsRef({{"shape", shape}}).get());
}
Tensor broadcast_to(const Tensor& x, const Shape& shape, Site site) {
  set_site(site);
  return call1(op_of<"BroadcastTo">(), x, AttrsRef({{"shape", shape}}).get());
}
Tensor identity(const Tensor& x, Site site) {
  set_site(site);
  if (x.dtype() == resource) {
    raise_with_place(
        errors::InvalidArgument("Identity: its input is the handle of a "
                                "variable; expected a value: read it first"),
        t_state.layer, t_state.site);
  }
  return call1(op_of<"Identity">(), x);
}
Tensor stop_gradient(const Tensor& x, Site site) {
  return unary<"StopGradient">(x, site);
}

namespace {

// One dimension may be kUnknownDim (-1): it takes what is left. Symbolic
// dimensions (below -1) stay what they are.
// A handle's variable stays the same.
void infer_alias(InferContext& c) {
  if (c.dtype(0) == resource) {
    c.set_variable_output(0, c.variable_dtype(0), c.shape(0));
  } else {
    infer_same_as_0(c);
  }
}

void infer_reshape(InferContext& c) {
  const Shape& in = c.shape(0);
  Shape out = c.attr<Shape>("shape");
  int wildcard = -1;
  int64_t known = 1;
  bool symbolic = false;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == kUnknownDim) {
      if (wildcard >= 0) {
        c.fail(fmt::format("shape {} has two -1; expected at most one",
                           out.str()));
      }
      wildcard = i;
    } else if (out[i] < 0) {
      symbolic = true;
    } else if (__builtin_mul_overflow(known, out[i], &known)) {
      known = INT64_MAX;  // as Shape::num_elements
    }
  }
  const int64_t n = in.num_elements();
  if (wildcard >= 0) {
    if (n >= 0 && !symbolic && known > 0 && n % known == 0) {
      out[wildcard] = n / known;
    } else if (n >= 0 && !symbolic) {
      c.fail(
          fmt::format("{} has {} elements; expected a multiple of {} for "
                      "shape {}",
                      in.str(), n, known, out.str()));
    } else {
      // Same unknown dimension, same rest: keep its name.
      int64_t symbol = kUnknownDim, in_known = 1;
      int unknowns = 0;
      for (int64_t d : in) {
        if (d < 0) {
          symbol = d;
          ++unknowns;
        } else {
          if (__builtin_mul_overflow(in_known, d, &in_known)) {
            in_known = INT64_MAX;
          }
        }
      }
      if (unknowns == 1 && !symbolic && in_known == known) {
        out[wildcard] = symbol;
      }
    }
  } else if (n >= 0 && !symbolic && n != known) {
    c.fail(fmt::format("{} has {} elements, shape {} has {}; expected as many",
                       in.str(), n, out.str(), known));
  }
  c.set_output(0, c.dtype(0), out);
}

// Only a cut of the first axis keeps bytes together, when it stays whole.
std::vector<SplitSignature> split_first_axis(const InferContext& c) {
  const Shape &in = c.shape(0), &out = c.output(0).shape;
  if (in.rank() == 0 || out.rank() == 0 || in[0] != out[0]) return {};
  return {{{0}, {0}}};
}

void infer_broadcast_to(InferContext& c) {
  const Shape& shape = c.attr<Shape>("shape");
  const Shape out = broadcast_shapes(c, c.shape(0), shape);
  if (!out.compatible_with(shape)) {
    c.fail(fmt::format("{} does not broadcast to {}", c.shape(0).str(),
                       shape.str()));
  }
  c.set_output(0, c.dtype(0), shape);
}

}  // namespace

void register_array_ops(OpRegistry& r) {
  for (const char* name : {"ZerosLike", "OnesLike"}) {
    r.op(name)
        .input("x")
        .output("y")
        .infer(&infer_same_as_0)
        .split(&split_elementwise)
        // As in TensorFlow: zeros that flow would be NaN after a pole.
        .not_differentiable();
  }
  r.op("Reshape")
      .input("tensor", kEveryType | kStringType)
      .output("output")
      .required_attr("shape", Shape{})
      .kind(OpKind::kAlias)
      .infer(&infer_reshape)
      .split(&split_first_axis)
      .gradient([](const GradCall& g) {
        const Shape& shape = g.x(0).shape();
        if (!shape.is_fully_defined())
          return Tensors{call1(op_of<"ReshapeLike">(), g.dy(), g.x(0))};
        return Tensors{reshape(g.dy(), shape, {})};
      });
  for (const char* name : {"Identity", "StopGradient"}) {
    OpBuilder op = r.op(name);
    const bool identity = name[0] == 'I';
    // Graphs pass handles of variables on.
    op.input("input", kEveryType | kStringType | (identity ? kResourceType : 0))
        .output("output")
        .kind(OpKind::kAlias)
        .infer(&infer_alias)
        .split(&split_elementwise);
    if (identity) {
      op.gradient([](const GradCall& g) { return Tensors{g.dy()}; });
    } else {
      op.gradient([](const GradCall&) { return Tensors{{}}; });
    }
  }
  r.op("DeepCopy")
      .input("x")
      .output("y")
      .infer(&infer_same_as_0)
      .split(&split_elementwise)
      .gradient([](const GradCall& g) { return Tensors{g.dy()}; })
      .doc("The same value in memory of its own.");
  r.op("BroadcastTo")
      .input("input")
      .output("output")
      .required_attr("shape", Shape{})
      .infer(&infer_broadcast_to)
      .split(&split_elementwise)
      .gradient(
          [](const GradCall& g) { return Tensors{sum_to(g.dy(), g.x(0))}; });
}

}  // namespace berth
