// Reading tensors back to the host and copying them between devices.

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/needs_values.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/holders.h"
#include "tensor/block_copy.h"
#include "tensor/host_reads.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

void check_readable(const Tensor& t, const char* what, Site site) {
  if (!t.defined()) {
    throw errors::FailedPrecondition(fmt::format(
        "{} of an empty Tensor{}", what, where_text(nullptr, site)));
  }
  if (t.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(fmt::format(
        "{} inside a traced function{}: the value does not exist while "
        "the step is traced; return the tensor from the function and read it "
        "there, or write the decision as an op (math::where)",
        what, where_text(nullptr, site)));
  }
  if (t.dtype() == resource) {
    throw errors::InvalidArgument(
        fmt::format("{} of a Variable's handle{}; expected its value()", what,
                    where_text(nullptr, site)));
  }
}

void refuse_strings(const Tensor& t, const char* what, Site site) {
  if (t.dtype() != string_) return;
  throw errors::InvalidArgument(
      fmt::format("{} of a tensor of strings{}; expected numbers: read "
                  "text with to_vector<std::string>()",
                  what, where_text(nullptr, site)));
}

// False for a number that the whole numbers To do not hold.
template <class To, class From>
bool fits(const From& v) {
  if constexpr (!std::is_integral_v<To> || std::is_same_v<To, bool>) {
    return true;
  } else if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    return std::in_range<To>(v);
  } else if constexpr (is_complex_type<From>) {
    return fits<To>(v.real());
  } else {
    const double x = static_cast<double>(v);
    return x > static_cast<double>(std::numeric_limits<To>::min()) - 1 &&
           x < static_cast<double>(std::numeric_limits<To>::max()) + 1;
  }
}

// All digits of a whole number.
template <class T>
std::string number_text(const T& v) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else {
    return fmt::format("{}", convert_element<double>(v));
  }
}

template <class To, class From>
std::vector<To> convert(const Tensor& t, Site site) {
  const size_t n = static_cast<size_t>(t.num_elements());
  std::unique_ptr<From[]> raw(new From[n]);
  t.copy_to(raw.get(), site);
  std::vector<To> out(n);
  for (size_t i = 0; i < n; ++i) {
    if (!fits<To>(raw[i])) {
      throw errors::InvalidArgument(fmt::format(
          "{} cannot be read as {} bits of a whole number{}; expected a "
          "type that holds it, as int64_t or double",
          number_text(raw[i]), 8 * sizeof(To), where_text(nullptr, site)));
    }
    out[i] = convert_element<To>(raw[i]);
  }
  return out;
}

}  // namespace

void Tensor::copy_to(void* target, Site site) const {
  check_readable(*this, "copy_to", site);
  refuse_strings(*this, "copy_to", site);
  const TensorImpl& t = *impl_;
  const size_t bytes = t.size_bytes();
  if (target == nullptr && bytes > 0) {
    throw errors::InvalidArgument(
        fmt::format("copy_to a null pointer{}; expected room for {} "
                    "bytes",
                    where_text(nullptr, site), bytes));
  }
  ReadGuard guard;
  guard.hold(t.block);
  synchronize(t.block->ready);  // of nothing too: what makes it may fail
  if (bytes == 0) return;
  t.block->device->copy_to_host(target, t.data(), bytes);
  if (!t.block->device->memory().host_addressable) {
    ++host_reads().count;
    host_reads().last = t.block->device;
  }
}

ReadsOfThread& host_reads() {
  static thread_local ReadsOfThread reads;
  return reads;
}

template <ElementType T>
std::vector<T> Tensor::to_vector(Site site) const {
  check_readable(*this, "to_vector", site);
  refuse_strings(*this, "to_vector", site);
  return visit_dtype(dtype(), "to_vector", [&](auto type) {
    return convert<T, decltype(type)>(*this, site);
  });
}

template <>
std::vector<std::string> Tensor::to_vector<std::string>(Site site) const {
  check_readable(*this, "to_vector", site);
  if (dtype() == string_) return strings_of(*this);
  throw errors::InvalidArgument(fmt::format(
      "to_vector<std::string> of {}{}; expected a tensor of strings: "
      "str() prints numbers",
      name_of(dtype()), where_text(nullptr, site)));
}

template <ElementType T>
T Tensor::item(Site site) const {
  check_readable(*this, "item", site);
  if (num_elements() != 1) {
    throw errors::InvalidArgument(fmt::format(
        "item: the tensor has shape {} and {} elements; expected exactly "
        "one{}; use to_vector, or reduce it first",
        shape().str(), num_elements(), where_text(nullptr, site)));
  }
  return to_vector<T>(site)[0];
}

#define BERTH_READ_AS(T)                                    \
  template std::vector<T> Tensor::to_vector<T>(Site) const; \
  template T Tensor::item<T>(Site) const
BERTH_READ_AS(float);
BERTH_READ_AS(double);
BERTH_READ_AS(int32_t);
BERTH_READ_AS(int64_t);
BERTH_READ_AS(uint8_t);
BERTH_READ_AS(bool);
BERTH_READ_AS(int8_t);
BERTH_READ_AS(int16_t);
BERTH_READ_AS(uint16_t);
BERTH_READ_AS(uint32_t);
BERTH_READ_AS(uint64_t);
BERTH_READ_AS(bfloat16_t);
BERTH_READ_AS(float16_t);
BERTH_READ_AS(std::complex<float>);
BERTH_READ_AS(std::complex<double>);
#undef BERTH_READ_AS
template std::string Tensor::item<std::string>(Site) const;

namespace {

// Launches a copy of `t`, which is not empty, to a new tensor on `device`.
Tensor launch_copy(const Tensor& t, Device& device) {
  const TensorImpl& from = *t.impl();
  Tensor out = make_tensor(device, from.dtype, from.shape);
  name_holder(out.impl()->block, "copies of tensors");
  Block* target = out.impl()->block;
  ReadGuard guard;
  guard.hold(from.block);
  VariableState* variable = borrowed_from(from.block);
  BlockCopy copy{.target = BlockRef::share(target),
                 .from = from.block->device,
                 .data = from.data(),
                 .bytes = from.size_bytes()};
  // Holding a snapshot would make the next writer copy it; the use noted on
  // the storage makes it wait.
  if (variable) {
    copy.variable = borrowed_handle(from.block);
  } else {
    copy.source = BlockRef::share(from.block);
  }
  // What comes in overlaps what is computed meanwhile.
  const bool comes_in = from.block->device != &device;
  Stream& stream = comes_in ? device.copy_stream() : device.compute_stream();
  if (comes_in && target->freed.stream) stream.wait_for_reuse(target->freed);
  stream.wait(from.block->ready);
  launch_block_copy(stream, std::move(copy), "Copy");
  target->ready = stream.record();
  if (comes_in) {
    if (&stream != &device.compute_stream()) add_use(target, target->ready);
    add_use(variable ? variable->storage.get() : from.block, target->ready);
  }
  return out;
}

// A copy of `t` on `device`, wherever `t` is.
Tensor copied(const Tensor& t, Device& device) {
  const TensorImpl& from = *t.impl();
  const bool here = device.runs_inline() && device.memory().host_addressable;
  if (from.size_bytes() > 0 && !here) return launch_copy(t, device);
  Tensor out = make_tensor(device, from.dtype, from.shape);
  name_holder(out.impl()->block, "copies of tensors");
  if (!here) {  // nothing to copy, but to wait for
    out.impl()->block->ready = from.block->ready;
    return out;
  }
  t.copy_to(out.impl()->data());
  return out;
}

}  // namespace

Tensor copy_to_device(const Tensor& t, Device& device) {
  const TensorImpl& from = *t.impl();
  if (from.block == nullptr || from.block->device == &device) return t;
  if (from.dtype == string_) {
    check_holds_strings(device);
    return t;
  }
  return copied(t, device);
}

Tensor own_copy(const Tensor& t, Device& device) {
  const TensorImpl& from = *t.impl();
  if (from.dtype == string_) return copy_to_device(t, device);
  // Libraries of GPUs take operands at multiples of 16 bytes alone.
  const bool fits =
      device.memory().host_addressable || from.byte_offset % 16 == 0;
  if (from.block->device == &device && fits && !from.block->borrowed.load()) {
    return t;
  }
  return copied(t, device);
}

}  // namespace berth
