// serialize_example: tensors as tf.train.Example and SequenceExample.

#include <fmt/format.h>

#include <bit>

#include "berth/io.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

void put_varint(uint64_t v, std::string* to) {
  for (; v >= 0x80; v >>= 7) *to += static_cast<char>(v | 0x80);
  *to += static_cast<char>(v);
}

// A field of bytes.
void put_bytes(int field, std::string_view bytes, std::string* to) {
  put_varint(static_cast<uint64_t>(field) << 3 | 2, to);
  put_varint(bytes.size(), to);
  to->append(bytes);
}

// A Feature of elements begin ... end - 1.
std::string feature_bytes(const Tensor& t, int64_t begin, int64_t end) {
  std::string list;
  int kind = 1;
  if (t.dtype() == string_) {
    for (int64_t i = begin; i < end; ++i) {
      put_bytes(1, string_at(t.impl()->data(), t.num_elements(), i), &list);
    }
  } else if (is_floating(t.dtype())) {
    const auto all = t.to_vector<float>();
    std::string packed;
    for (int64_t i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<uint32_t>(all[static_cast<size_t>(i)]);
      for (int b = 0; b < 32; b += 8) packed += static_cast<char>(bits >> b);
    }
    put_bytes(1, packed, &list);
    kind = 2;
  } else {
    const auto all = t.to_vector<int64_t>();
    std::string packed;
    for (int64_t i = begin; i < end; ++i) {
      put_varint(static_cast<uint64_t>(all[static_cast<size_t>(i)]), &packed);
    }
    put_bytes(1, packed, &list);
    kind = 3;
  }
  std::string feature;
  put_bytes(kind, list, &feature);
  return feature;
}

void check_feature(const std::string& name, const Tensor& t) {
  check_values(t, fmt::format("feature \"{}\"", name));
  if (t.dtype() == string_ || is_floating(t.dtype()) || is_integer(t.dtype()) ||
      t.dtype() == bool_) {
    return;
  }
  throw errors::InvalidArgument(
      fmt::format("feature \"{}\" is {}; expected floats, integers or strings",
                  name, t.spec().str()));
}

void put_entry(const std::string& name, const std::string& value,
               std::string* to) {
  std::string entry;
  put_bytes(1, name, &entry);
  put_bytes(2, value, &entry);
  put_bytes(1, entry, to);
}

std::string features_bytes(const std::map<std::string, Tensor>& features) {
  std::string all;
  for (const auto& [name, t] : features) {
    check_feature(name, t);
    put_entry(name, feature_bytes(t, 0, t.num_elements()), &all);
  }
  return all;
}

std::string list_bytes(const std::string& name, const Tensor& t) {
  check_feature(name, t);
  if (t.rank() == 0) {
    throw errors::InvalidArgument(fmt::format(
        "feature list \"{}\" is a scalar; expected a first dimension of time",
        name));
  }
  const int64_t steps = t.shape()[0];
  const int64_t width = steps == 0 ? 0 : t.num_elements() / steps;
  std::string list;
  for (int64_t i = 0; i < steps; ++i) {
    put_bytes(1, feature_bytes(t, i * width, (i + 1) * width), &list);
  }
  return list;
}

}  // namespace

std::string serialize_example(const std::map<std::string, Tensor>& features,
                              Site site) {
  return named_call("serialize_example", site, [&] {
    std::string message;
    put_bytes(1, features_bytes(features), &message);
    return message;
  });
}

std::string serialize_sequence_example(
    const std::map<std::string, Tensor>& context,
    const std::map<std::string, Tensor>& feature_lists, Site site) {
  return named_call("serialize_sequence_example", site, [&] {
    std::string message, lists;
    put_bytes(1, features_bytes(context), &message);
    for (const auto& [name, t] : feature_lists) {
      put_entry(name, list_bytes(name, t), &lists);
    }
    put_bytes(2, lists, &message);
    return message;
  });
}

}  // namespace berth::io
