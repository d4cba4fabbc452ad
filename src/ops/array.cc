// Making and reshaping tensors.

#include "berth/ops/array.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "berth/errors.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "ops/families.h"
#include "ops/op_call.h"
#include "tensor/string_tensor.h"

namespace berth {

namespace {

Device* asked_device() {
  // Nobody gives constants a line; the last op's would mislead.
  const Site last = std::exchange(t_state.site, Site{});
  Device* device = scope_device("constant");
  t_state.site = last;
  return device;
}

// Where a new constant lives: in a trace it stays on the host until the graph
// places it.
Tensor to_scope(const Tensor& host) {
  if (tracing()) return host;
  Device* device = asked_device();
  return copy_to_device(
      host, device ? *device : DeviceManager::get().default_device());
}

// Text stays on the host unless a scope asks for another device.
Tensor constant_text(const std::vector<std::string>& values,
                     const Shape& shape) {
  const Tensor t = make_strings(values, shape);
  Device* device = tracing() ? nullptr : asked_device();
  return device ? copy_to_device(t, *device) : t;
}

template <class T>
Tensor constant_of(const T* values, const Shape& shape) {
  Tensor t = make_tensor(DeviceManager::get().host(), dtype_of<T>, shape);
  if (t.num_elements() > 0) {
    std::memcpy(t.impl()->data(), values, t.impl()->size_bytes());
  }
  return to_scope(t);
}

}  // namespace

template <class T>
Tensor constant(std::span<const T> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
    throw errors::InvalidArgument(
        fmt::format("constant: {} values for shape {}; expected {}",
                    values.size(), shape.str(), shape.num_elements()));
  }
  using Text =
      std::conditional_t<std::is_same_v<T, const char*>, std::string, T>;
  if constexpr (std::is_same_v<Text, std::string>) {
    return constant_text(std::vector<std::string>(values.begin(), values.end()),
                         shape);
  } else {
    return constant_of(values.data(), shape);
  }
}
template Tensor constant(std::span<const float>, const Shape&);
template Tensor constant(std::span<const double>, const Shape&);
template Tensor constant(std::span<const int32_t>, const Shape&);
template Tensor constant(std::span<const int64_t>, const Shape&);
template Tensor constant(std::span<const uint8_t>, const Shape&);
template Tensor constant(std::span<const bool>, const Shape&);
template Tensor constant(std::span<const int8_t>, const Shape&);
template Tensor constant(std::span<const bfloat16_t>, const Shape&);
template Tensor constant(std::span<const float16_t>, const Shape&);
template Tensor constant(std::span<const std::complex<float>>, const Shape&);
template Tensor constant(std::span<const std::complex<double>>, const Shape&);
template Tensor constant(std::span<const std::string>, const Shape&);
template Tensor constant(std::span<const char* const>, const Shape&);

Tensor constant(float value) { return constant_of(&value, {}); }
Tensor constant(double value) { return constant_of(&value, {}); }
Tensor constant(int value) { return constant_of(&value, {}); }
Tensor constant(int64_t value) { return constant_of(&value, {}); }
Tensor constant(bool value) { return constant_of(&value, {}); }
Tensor constant(const char* value) { return constant_text({value}, {}); }

Tensor zeros_like(const Tensor& x, Site site) {
  static const OpDef& op = op_named("ZerosLike");
  set_site(site);
  return call1(op, x);
}
Tensor reshape(const Tensor& x, const Shape& shape, Site site) {
  static const OpDef& op = op_named("Reshape");
  set_site(site);
  return call1(op, x, AttrsRef({{"shape", shape}}).get());
}
Tensor broadcast_to(const Tensor& x, const Shape& shape, Site site) {
  static const OpDef& op = op_named("BroadcastTo");
  set_site(site);
  return call1(op, x, AttrsRef({{"shape", shape}}).get());
}
Tensor identity(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Identity");
  set_site(site);
  return call1(op, x);
}
Tensor stop_gradient(const Tensor& x, Site site) {
  static const OpDef& op = op_named("StopGradient");
  set_site(site);
  return call1(op, x);
}

namespace {

// One dimension may be kUnknownDim (-1): it takes what is left. Symbolic
// dimensions (below -1) stay what they are.
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
        .gradient([](const GradCall& g) {
          static const OpDef& zeros = op_named("ZerosLike");
          return Tensors{call1(zeros, g.x(0))};
        });
  }
  r.op("Reshape")
      .input("tensor", kEveryType | kStringType)
      .output("output")
      .required_attr("shape", Shape{})
      .kind(OpKind::kAlias)
      .infer(&infer_reshape)
      .split(&split_first_axis)
      .gradient([](const GradCall& g) {
        static const OpDef& op = op_named("ReshapeLike");
        const Shape& shape = g.x(0).shape();
        if (!shape.is_fully_defined())
          return Tensors{call1(op, g.dy(), g.x(0))};
        return Tensors{reshape(g.dy(), shape, {})};
      });
  for (const char* name : {"Identity", "StopGradient"}) {
    OpBuilder op = r.op(name);
    op.input("input", kEveryType | kStringType)
        .output("output")
        .kind(OpKind::kAlias)
        .infer(&infer_same_as_0)
        .split(&split_elementwise);
    if (name[0] == 'I') {
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
