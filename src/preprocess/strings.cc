// Functions of each text, and numbers.

#include "berth/strings.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <type_traits>

#include "berth/errors.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "preprocess/text_util.h"
#include "tensor/tensor_impl.h"

namespace berth::strings {

namespace {

using io::named_call;
using io::texts_of;

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

bool letter(char c, char first) { return c >= first && c < first + 26; }

std::string_view stripped(std::string_view s) {
  const size_t begin = s.find_first_not_of(kWhiteSpace);
  if (begin == s.npos) return {};
  return s.substr(begin, s.find_last_not_of(kWhiteSpace) - begin + 1);
}

Tensor each(const Tensor& input, const char* function, Site site,
            const std::function<std::string(std::string_view)>& fn) {
  const auto texts = texts_of(input, function, site);
  return named_call(function, site, [&] {
    TextMaker all;
    for (const std::string_view s : texts) all.add(fn(s));
    return all.tensor(input.shape());
  });
}

int64_t length_of(std::string_view s, bool code_points) {
  if (!code_points) return static_cast<int64_t>(s.size());
  int64_t n = 0;
  bool valid;
  for (; !s.empty(); ++n) s.remove_prefix(code_point(s, &valid));
  return n;
}

// Where code point `at` of `s` begins.
size_t place_of(std::string_view s, int64_t at, bool code_points) {
  if (!code_points) return static_cast<size_t>(at);
  size_t place = 0;
  bool valid;
  for (; at > 0 && place < s.size(); --at) {
    place += code_point(s.substr(place), &valid);
  }
  return place;
}

std::string part_of(std::string_view s, int64_t pos, int64_t len,
                    bool code_points) {
  const int64_t n = length_of(s, code_points);
  const int64_t begin = pos < 0 ? n + pos : pos;
  if (begin < 0 || begin > n) {
    throw errors::InvalidArgument(fmt::format(
        "pos is {} in a text of length {}; expected a place within it", pos,
        n));
  }
  const int64_t end = begin + std::min(len, n - begin);
  const size_t a = place_of(s, begin, code_points);
  const size_t b = place_of(s, end, code_points);
  return std::string(s.substr(a, b - a));
}

template <class T>
Tensor numbers_of(const std::vector<std::string_view>& texts, DType dtype,
                  const Shape& shape) {
  Tensor t = data::make_batch(dtype, shape);
  T* to = reinterpret_cast<T*>(t.impl()->data());
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string_view s = stripped(texts[i]);
    if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
    const auto [p, code] =
        std::from_chars(s.data(), s.data() + s.size(), to[i]);
    if (code == std::errc() && p == s.data() + s.size()) continue;
    throw errors::InvalidArgument(
        fmt::format("text {} is \"{}\"; expected a number of {}", i,
                    texts[i].substr(0, 60), name_of(dtype)));
  }
  return t;
}

template <class T>
std::string number_text(T v, const AsStringOptions& o) {
  std::string s;
  if constexpr (std::is_same_v<T, bool>) {
    s = v ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    const bool exact = o.precision < 0;
    s = o.scientific ? (exact ? fmt::format("{:e}", v)
                              : fmt::format("{:.{}e}", v, o.precision))
                     : (exact ? fmt::format("{}", v)
                              : fmt::format("{:.{}f}", v, o.precision));
  } else {
    s = fmt::format("{}", v);
  }
  const char fill = o.fill.empty() ? ' ' : o.fill[0];
  const auto width = static_cast<size_t>(std::max(o.width, 0));
  if (s.size() < width) s.insert(0, width - s.size(), fill);
  return s;
}

template <class T>
Tensor number_texts(const Tensor& input, const AsStringOptions& o, Site site) {
  TextMaker all;
  const auto values = input.to_vector<T>(site);
  for (size_t i = 0; i < values.size(); ++i) {
    all.add(number_text<T>(values[i], o));
  }
  return all.tensor(input.shape());
}

}  // namespace

Tensor length(const Tensor& input, const std::string& unit, Site site) {
  const auto texts = texts_of(input, "length", site);
  return named_call("length", site, [&] {
    const bool code_points = counts_code_points(unit);
    Tensor t = data::make_batch(int32, input.shape());
    auto* to = reinterpret_cast<int32_t*>(t.impl()->data());
    for (const std::string_view s : texts) {
      *to++ = static_cast<int32_t>(length_of(s, code_points));
    }
    return t;
  });
}

Tensor lower(const Tensor& input, Site site) {
  return each(input, "lower", site, [](std::string_view s) {
    std::string all(s);
    for (char& c : all) c = letter(c, 'A') ? static_cast<char>(c + 32) : c;
    return all;
  });
}

Tensor upper(const Tensor& input, Site site) {
  return each(input, "upper", site, [](std::string_view s) {
    std::string all(s);
    for (char& c : all) c = letter(c, 'a') ? static_cast<char>(c - 32) : c;
    return all;
  });
}

Tensor strip(const Tensor& input, Site site) {
  return each(input, "strip", site,
              [](std::string_view s) { return std::string(stripped(s)); });
}

Tensor substr(const Tensor& input, int64_t pos, int64_t len,
              const std::string& unit, Site site) {
  return each(input, "substr", site, [&](std::string_view s) {
    if (len < 0) {
      throw errors::InvalidArgument(
          fmt::format("len is {}; expected 0 or more", len));
    }
    return part_of(s, pos, len, counts_code_points(unit));
  });
}

Tensor to_number(const Tensor& input, DType out_type, Site site) {
  const auto texts = texts_of(input, "to_number", site);
  return named_call("to_number", site, [&] {
    switch (out_type) {
      case float32:
        return numbers_of<float>(texts, out_type, input.shape());
      case float64:
        return numbers_of<double>(texts, out_type, input.shape());
      case int32:
        return numbers_of<int32_t>(texts, out_type, input.shape());
      case int64:
        return numbers_of<int64_t>(texts, out_type, input.shape());
      default:
        throw errors::InvalidArgument(
            fmt::format("out_type is {}; expected float32, float64, int32 or "
                        "int64",
                        name_of(out_type)));
    }
  });
}

Tensor as_string(const Tensor& input, const AsStringOptions& o, Site site) {
  return named_call("as_string", site, [&] {
    io::check_values(input, "input");
    const bool exact = o.precision >= -1 && o.precision <= 60 &&
                       o.width >= -1 && o.width <= 1000 && o.fill.size() <= 1;
    if (!exact) {
      throw errors::InvalidArgument(fmt::format(
          "precision {}, width {}, fill \"{}\"; expected at most 60, 1000 and "
          "one character",
          o.precision, o.width, o.fill));
    }
    const DType d = input.dtype();
    if (d == string_) return input;
    if (d == bool_) return number_texts<bool>(input, o, site);
    if (d == float64) return number_texts<double>(input, o, site);
    if (is_floating(d)) return number_texts<float>(input, o, site);
    if (d == uint64) return number_texts<uint64_t>(input, o, site);
    if (is_integer(d)) return number_texts<int64_t>(input, o, site);
    throw errors::InvalidArgument(
        fmt::format("the input is {}; expected numbers", input.spec().str()));
  });
}

}  // namespace berth::strings
