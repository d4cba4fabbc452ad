// The text form of expressions.

#include <fmt/format.h>

#include <charconv>

#include "berth/errors.h"
#include "expr/expr.h"

namespace berth::expr {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("'{}'", token));
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

  int value() {
    expect("v");
    int n = 0;
    const char* begin = text_.data() + at_;
    const auto r = std::from_chars(begin, text_.data() + text_.size(), n);
    if (r.ec != std::errc() || n < 0) fail("the number of a value");
    at_ += static_cast<size_t>(r.ptr - begin);
    return n;
  }

  double number() {
    skip_spaces();
    double x = 0;
    const char* begin = text_.data() + at_;
    const auto r = std::from_chars(begin, text_.data() + text_.size(), x);
    if (r.ec != std::errc()) fail("a number");
    at_ += static_cast<size_t>(r.ptr - begin);
    return x;
  }

  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  DType type() {
    const size_t before = at_;
    const DType d = dtype_from_name(word());
    if (d == DType::kInvalid) {
      at_ = before;
      fail("a dtype");
    }
    return d;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw errors::InvalidArgument(
        fmt::format("expression: \"{}\" at {}; expected {}",
                    text_.substr(at_, 20), at_, expected));
  }

 private:
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The part after "v3=".
int read_result(Reader& r, Expr& e) {
  const std::string_view word = r.word();
  const DType type = dtype_from_name(word);
  if (type != DType::kInvalid) return e.constant(type, r.number());
  const OpCode code = code_named(word);
  if (code == OpCode::kCount) r.fail("an operation or a dtype before it");
  int args[3] = {-1, -1, -1};
  int n = 0;
  r.expect("(");
  do {
    if (n == 3) r.fail("at most 3 operands");
    args[n++] = r.value();
  } while (r.take(","));
  r.expect(")");
  if (code == OpCode::kCast) {
    if (n != 1) r.fail("one operand of cast before it");
    r.expect(":");
    return e.cast(args[0], r.type());
  }
  switch (n) {
    case 1:
      return e.apply(code, {args[0]});
    case 2:
      return e.apply(code, {args[0], args[1]});
    default:
      return e.apply(code, {args[0], args[1], args[2]});
  }
}

}  // namespace

std::string Expr::str() const {
  std::string s;
  for (int i = 0; i < size(); ++i) {
    const Value& v = values_[i];
    if (i > 0) s += ", ";
    if (v.code == OpCode::kInput) {
      s += fmt::format("v{}:{}", i, name_of(v.type));
    } else if (v.code == OpCode::kConstant) {
      s += v.type == float32
               ? fmt::format("v{}={} {}", i, name_of(v.type),
                             static_cast<float>(v.number))
               : fmt::format("v{}={} {}", i, name_of(v.type), v.number);
    } else {
      s += fmt::format("v{}={}(", i, info(v.code).name);
      for (int a = 0; a < info(v.code).operands; ++a) {
        s += fmt::format("{}v{}", a > 0 ? "," : "", v.args[a]);
      }
      s += v.code == OpCode::kCast ? fmt::format("):{}", name_of(v.type)) : ")";
    }
  }
  s += " ->";
  for (const int o : outputs_) s += fmt::format(" v{}", o);
  return s;
}

Expr Expr::parse(std::string_view text) {
  Reader r(text);
  Expr e;
  do {
    const int number = r.value();
    if (number != e.size()) r.fail(fmt::format("v{} before it", e.size()));
    if (r.take(":")) {
      e.input(r.type());
    } else {
      r.expect("=");
      read_result(r, e);
    }
  } while (r.take(","));
  r.expect("->");
  do {
    e.output(r.value());
  } while (!r.at_end());
  return e;
}

}  // namespace berth::expr
