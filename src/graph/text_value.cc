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
#include "tensor/tensor_impl.h"

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
    line.fail(
        fmt::format("dtype '{}', expected float32, float64, int32, "
                    "int64, uint8, bool or resource",
                    word));
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
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Shortest text that reads back to the same bits.
template <class T>
void append_number(std::string& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
    return;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) {
      const auto bits = std::bit_cast<BitsOf<T>>(value);
      out += "nan";
      if (bits !=
          std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::quiet_NaN())) {
        fmt::format_to(std::back_inserter(out), "0x{:x}", bits);
      }
      return;
    }
  }
  fmt::format_to(std::back_inserter(out), "{}", value);
}

template <class T>
bool read_number(std::string_view text, T* value) {
  if constexpr (std::is_same_v<T, bool>) {
    *value = text == "true";
    return text == "true" || text == "false";
  } else {
    const char* end = text.data() + text.size();
    if constexpr (std::is_floating_point_v<T>) {
      if (text.starts_with("nan0x")) {
        BitsOf<T> bits = 0;
        const auto [stop, error] =
            std::from_chars(text.data() + 5, end, bits, 16);
        *value = std::bit_cast<T>(bits);
        return error == std::errc() && stop == end && std::isnan(*value);
      }
    }
    const auto [stop, error] = std::from_chars(text.data(), end, *value);
    return error == std::errc() && stop == end;
  }
}

template <class T>
T parse_number(TextLine& line) {
  const std::string_view text = line.number("a number");
  T value;
  if (!read_number(text, &value)) {
    line.fail(fmt::format("number '{}', expected one that {} holds", text,
                          name_of(dtype_of<T>)));
  }
  return value;
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
  switch (dtype) {
    case DType::kFloat32:
      return parse_elements<float>(line);
    case DType::kFloat64:
      return parse_elements<double>(line);
    case DType::kInt32:
      return parse_elements<int32_t>(line);
    case DType::kInt64:
      return parse_elements<int64_t>(line);
    case DType::kUint8:
      return parse_elements<uint8_t>(line);
    case DType::kBool:
      return parse_elements<bool>(line);
    default:
      break;
  }
  line.fail("a tensor of resources, expected numbers or bools");
}

Tensor parse_blob(TextLine& line, const OutSpec& spec) {
  const std::string hash(line.number("the hash of a blob"));
  Tensor t = find_blob(hash);
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
  const int64_t n = t.num_elements();
  if (n > kMaxInlineElements) {
    out += ", blob " + keep_blob(t) + ")";
    return;
  }
  std::byte bytes[kMaxInlineElements * sizeof(int64_t)];
  t.copy_to(bytes);
  switch (t.dtype()) {
    case DType::kFloat32:
      append_elements<float>(out, bytes, n);
      break;
    case DType::kFloat64:
      append_elements<double>(out, bytes, n);
      break;
    case DType::kInt32:
      append_elements<int32_t>(out, bytes, n);
      break;
    case DType::kInt64:
      append_elements<int64_t>(out, bytes, n);
      break;
    case DType::kUint8:
      append_elements<uint8_t>(out, bytes, n);
      break;
    case DType::kBool:
      append_elements<bool>(out, bytes, n);
      break;
    default:
      break;
  }
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
  if (n > kMaxInlineElements) {
    line.expect(",");
    if (!line.take_word("blob")) line.fail_here("'blob' and a hash");
    t = parse_blob(line, spec);
  } else {
    const auto bytes = parse_elements(line, spec.dtype);
    if (bytes.size() != static_cast<size_t>(n) * size_of(spec.dtype)) {
      line.fail(fmt::format("{} elements, expected {} for shape {}",
                            bytes.size() / size_of(spec.dtype), n,
                            spec.shape.str()));
    }
    t = make_tensor(DeviceManager::get().host(), spec.dtype, spec.shape);
    if (n > 0) std::memcpy(t.impl()->data(), bytes.data(), bytes.size());
  }
  line.expect(")");
  return t;
}

}  // namespace berth
