#include "graph/text_value.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/device_manager.h"
#include "graph/blob_table.h"
#include "graph/graph.h"
#include "op/op_def.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/visit_dtype.h"

namespace berth {

bool shape_fits(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (d > kMaxTextElements) return false;
    if (d <= 0) continue;
    if (n > kMaxTextElements / d) return false;
    n *= d;
  }
  return true;
}

void append_shape(std::string& out, const Shape& shape) {
  out += '[';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out += ',';
    if (shape[i] >= 0) {
      fmt::format_to(std::back_inserter(out), "{}", shape[i]);
    } else {
      out += '?';
      if (shape[i] < kUnknownDim) {
        // A signature may also hold small symbols of the user's own.
        const int64_t before_first =
            shape[i] <= kFirstSymbol ? kFirstSymbol + 1 : kUnknownDim;
        fmt::format_to(std::back_inserter(out), "{}", before_first - shape[i]);
      }
    }
  }
  out += ']';
}

namespace {

int64_t parse_dim(TextLine& line) {
  if (!line.take("?")) {
    const int64_t d = line.integer("a dimension: a number, ? or ?1");
    if (d < 0) line.fail(fmt::format("dimension {}, expected 0 or more", d));
    return d;
  }
  if (!line.at_number()) return kUnknownDim;
  const int64_t symbol = line.integer("the number of a symbol");
  constexpr int64_t kLast = std::numeric_limits<int32_t>::max();
  if (symbol < 1 || symbol > kLast) {
    line.fail(fmt::format("symbol ?{}, expected 1 to {}", symbol, kLast));
  }
  return kFirstSymbol + 1 - symbol;
}

}  // namespace

Shape parse_shape(TextLine& line) {
  Shape shape;
  line.expect("[");
  while (!line.take("]")) {
    if (shape.rank() > 0) line.expect(",");
    if (shape.rank() == kMaxRank) {
      line.fail(
          fmt::format("a shape of more than {} dimensions, expected at "
                      "most {}",
                      kMaxRank, kMaxRank));
    }
    shape.push_back(parse_dim(line));
  }
  if (!shape_fits(shape)) {
    line.fail(
        fmt::format("shape {}, expected at most 2^40 elements", shape.str()));
  }
  return shape;
}

DType parse_dtype(TextLine& line) {
  const std::string_view word = line.word("a dtype, for example float32");
  const DType dtype = dtype_from_name(word);
  if (dtype == DType::kInvalid) {
    line.fail(fmt::format("dtype '{}', expected one of {}", word,
                          dtype_list(kAnyType)));
  }
  return dtype;
}

void append_spec(std::string& out, const OutSpec& spec) {
  out += name_of(spec.dtype);
  if (spec.variable != DType::kInvalid) {
    out += '(';
    out += name_of(spec.variable);
    out += ')';
  }
  append_shape(out, spec.shape);
}

OutSpec parse_spec(TextLine& line) {
  OutSpec spec;
  spec.dtype = parse_dtype(line);
  if (spec.dtype == resource && line.take("(")) {
    spec.variable = parse_dtype(line);
    line.expect(")");
  }
  spec.shape = parse_shape(line);
  return spec;
}

namespace {

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, uint16_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class T>
inline constexpr bool is_fraction =
    std::is_floating_point_v<T> || is_half_type<T>;

template <class T>
T quiet_nan() {
  return convert_element<T>(
      std::numeric_limits<
          std::conditional_t<is_half_type<T>, float, T>>::quiet_NaN());
}

// A half as the float that it is.
template <class T>
void append_fraction(std::string& out, T value) {
  const auto wide =
      convert_element<std::conditional_t<is_half_type<T>, float, T>>(value);
  const auto bits = std::bit_cast<BitsOf<T>>(value);
  if (!std::isnan(wide)) {
    fmt::format_to(std::back_inserter(out), "{}", wide);
  } else if (bits == std::bit_cast<BitsOf<T>>(quiet_nan<T>())) {
    out += "nan";
  } else {
    fmt::format_to(std::back_inserter(out), "nan0x{:x}", bits);
  }
}

// Shortest text that reads back to the same bits.
template <class T>
void append_number(std::string& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (is_complex_type<T>) {
    out += '(';
    append_number(out, value.real());
    out += ", ";
    append_number(out, value.imag());
    out += ')';
  } else if constexpr (is_fraction<T>) {
    append_fraction(out, value);
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

// False when the number is none that T holds: a half must be exactly one.
template <class T>
bool read_number(std::string_view text, T* value) {
  const char* end = text.data() + text.size();
  if constexpr (is_fraction<T>) {
    if (text.starts_with("nan0x")) {
      BitsOf<T> bits = 0;
      const auto [stop, error] =
          std::from_chars(text.data() + 5, end, bits, 16);
      *value = std::bit_cast<T>(bits);
      return error == std::errc() && stop == end &&
             std::isnan(convert_element<double>(*value));
    }
  }
  if constexpr (std::is_same_v<T, bool>) {
    *value = text == "true";
    return text == "true" || text == "false";
  } else if constexpr (is_half_type<T>) {
    float wide = 0;
    if (!read_number(text, &wide)) return false;
    *value = T(wide);
    return std::isnan(wide) || static_cast<float>(*value) == wide;
  } else {
    const auto [stop, error] = std::from_chars(text.data(), end, *value);
    return error == std::errc() && stop == end;
  }
}

template <class T>
T parse_number(TextLine& line) {
  if constexpr (is_complex_type<T>) {
    line.expect("(");
    const auto re = parse_number<typename T::value_type>(line);
    line.expect(",");
    const auto im = parse_number<typename T::value_type>(line);
    line.expect(")");
    return {re, im};
  } else {
    const std::string_view text = line.number("a number");
    T value;
    if (!read_number(text, &value)) {
      line.fail(fmt::format("number '{}', expected one that {} holds", text,
                            name_of(dtype_of<T>)));
    }
    return value;
  }
}

template <class T>
void append_elements(std::string& out, const std::byte* bytes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out += ", ";
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    append_number(out, value);
  }
}

// Sized by the text, not by the shape it claims.
template <class T>
std::vector<std::byte> parse_elements(TextLine& line) {
  std::vector<std::byte> bytes;
  while (line.take(",")) {
    const T value = parse_number<T>(line);
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof(T));
  }
  return bytes;
}

std::vector<std::byte> parse_elements(TextLine& line, DType dtype) {
  if (size_of(dtype) == 0) {
    line.fail(fmt::format("a tensor of {}, expected numbers, bools or strings",
                          name_of(dtype)));
  }
  return visit_dtype(dtype, "elements", [&](auto type) {
    return parse_elements<decltype(type)>(line);
  });
}

void check_count(TextLine& line, size_t n, const Shape& shape) {
  if (static_cast<int64_t>(n) == shape.num_elements()) return;
  line.fail(fmt::format("{} elements, expected {} for shape {}", n,
                        shape.num_elements(), shape.str()));
}

Tensor parse_strings(TextLine& line, const Shape& shape) {
  std::vector<std::string> values;
  while (line.take(",")) values.push_back(line.quoted("a string in quotes"));
  check_count(line, values.size(), shape);
  return make_strings(values, shape);
}

Tensor parse_blob(TextLine& line, const OutSpec& spec) {
  const std::string hash(line.number("the hash of a blob"));
  Tensor t = find_blob(hash);
  if (!t.defined()) t = blob_without_values(hash, spec.dtype, spec.shape);
  if (!t.defined()) {
    line.fail(
        fmt::format("blob {} is unknown, expected one that this process "
                    "printed: constants above {} elements are not in "
                    "the text",
                    hash, kMaxInlineElements));
  }
  if (t.dtype() != spec.dtype || !(t.shape() == spec.shape)) {
    line.fail(fmt::format("blob {} is {}{}, expected {}{}", hash,
                          name_of(t.dtype()), t.shape().str(),
                          name_of(spec.dtype), spec.shape.str()));
  }
  return t;
}

}  // namespace

void append_double(std::string& out, double value) {
  const size_t begin = out.size();
  append_number(out, value);
  const bool told = out.find_first_of(".einx", begin) != std::string::npos;
  if (!told) out += ".0";
}

double parse_double(TextLine& line) { return parse_number<double>(line); }

void append_tensor(std::string& out, const Tensor& t) {
  if (!t.defined()) {
    out += "tensor()";
    return;
  }
  out += "tensor(";
  append_spec(out, {t.dtype(), t.shape()});
  if (t.dtype() == string_) {
    for (const std::string& value : strings_of(t)) {
      out += ", ";
      append_quoted(out, value);
    }
    out += ')';
    return;
  }
  const int64_t n = t.num_elements();
  if (n > kMaxInlineElements) {
    out += ", blob " + keep_blob(t) + ")";
    return;
  }
  std::byte bytes[kMaxInlineElements * sizeof(std::complex<double>)];
  t.copy_to(bytes);
  visit_dtype(t.dtype(), "text", [&](auto type) {
    append_elements<decltype(type)>(out, bytes, n);
  });
  out += ')';
}

Tensor parse_tensor(TextLine& line) {
  line.expect("(");
  if (line.take(")")) return {};
  const OutSpec spec = parse_spec(line);
  const int64_t n = spec.shape.num_elements();
  if (n < 0) {
    line.fail(fmt::format("a tensor of shape {}, expected known dimensions",
                          spec.shape.str()));
  }
  Tensor t;
  if (spec.dtype == string_) {
    t = parse_strings(line, spec.shape);
  } else if (n > kMaxInlineElements) {
    line.expect(",");
    if (!line.take_word("blob")) line.fail_here("'blob' and a hash");
    t = parse_blob(line, spec);
  } else {
    const auto bytes = parse_elements(line, spec.dtype);
    check_count(line, bytes.size() / size_of(spec.dtype), spec.shape);
    t = make_tensor(DeviceManager::get().host(), spec.dtype, spec.shape);
    if (n > 0) std::memcpy(t.impl()->data(), bytes.data(), bytes.size());
  }
  line.expect(")");
  return t;
}

}  // namespace berth
