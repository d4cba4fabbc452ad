#include "graph/text_line.h"

#include <fmt/format.h>

#include <charconv>

#include "berth/errors.h"

namespace berth {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) {
  return is_letter(c) || c == '_' || c == '.' || c == '/';
}
bool in_word(char c) { return starts_word(c) || is_digit(c) || c == '-'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

int64_t TextLine::column() {
  skip_space();
  return static_cast<int64_t>(at_) + 1;
}

void TextLine::fail_at(int64_t column, const std::string& what) const {
  throw errors::InvalidArgument(
      fmt::format("line {}, column {}: {}", number_, column, what));
}

void TextLine::fail(const std::string& what) const {
  fail_at(static_cast<int64_t>(token_) + 1, what);
}

void TextLine::fail_here(std::string_view expected) {
  skip_space();
  constexpr size_t kShown = 24;
  const std::string_view rest = text_.substr(at_);
  std::string found = "the end of the line";
  if (!rest.empty()) {
    found.clear();
    append_quoted(found, rest.substr(0, kShown));
    if (rest.size() > kShown) found += "...";
  }
  fail_at(column(), fmt::format("found {}, expected {}", found, expected));
}

void TextLine::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

char TextLine::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextLine::at_end() {
  skip_space();
  return at_ == text_.size();
}

bool TextLine::take(std::string_view symbol) {
  skip_space();
  if (text_.substr(at_, symbol.size()) != symbol) return false;
  token_ = at_;
  at_ += symbol.size();
  return true;
}

void TextLine::expect(std::string_view symbol) {
  if (!take(symbol)) fail_here(fmt::format("'{}'", symbol));
}

bool TextLine::take_word(std::string_view word) {
  if (!at_word()) return false;
  const size_t before = at_, token = token_;
  if (this->word(word) == word) return true;
  at_ = before;
  token_ = token;
  return false;
}

bool TextLine::at_word() { return starts_word(peek()); }
bool TextLine::at_quote() { return peek() == '"'; }
bool TextLine::at_number() {
  const char c = peek();
  return is_digit(c) || c == '-' || c == '+';
}
bool TextLine::at_special_number() {
  skip_space();
  return text_.substr(at_, 3) == "nan" || text_.substr(at_, 3) == "inf";
}

std::string_view TextLine::word(std::string_view what) {
  if (!at_word()) fail_here(what);
  token_ = at_;
  while (at_ < text_.size() && in_word(text_[at_])) ++at_;
  return text_.substr(token_, at_ - token_);
}

std::string TextLine::name(std::string_view what) {
  return at_quote() ? quoted(what) : std::string(word(what));
}

std::string TextLine::quoted(std::string_view what) {
  if (!at_quote()) fail_here(what);
  std::string out;
  token_ = at_;
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return out;
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    const size_t backslash = at_;
    if (++at_ == text_.size()) break;
    const char escape = text_[at_];
    if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'n') {
      out += '\n';
    } else if (escape == 'x' && at_ + 2 < text_.size() &&
               hex_value(text_[at_ + 1]) >= 0 &&
               hex_value(text_[at_ + 2]) >= 0) {
      out += static_cast<char>(hex_value(text_[at_ + 1]) * 16 +
                               hex_value(text_[at_ + 2]));
      at_ += 2;
    } else {
      fail_at(
          static_cast<int64_t>(backslash) + 1,
          "an escape that is unknown, expected \\\", \\\\, \\n or \\xHH with "
          "lower-case digits");
    }
  }
  fail("a quote that does not end, expected '\"'");
}

int64_t TextLine::integer(std::string_view what) {
  skip_space();
  int64_t value = 0;
  const char* begin = text_.data() + at_;
  const char* end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) {
    fail_here("a number that fits 64 bits");
  }
  if (error != std::errc()) fail_here(what);
  token_ = at_;
  at_ += static_cast<size_t>(stop - begin);
  return value;
}

std::string_view TextLine::number(std::string_view what) {
  skip_space();
  token_ = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (!is_digit(c) && !is_letter(c) && c != '-' && c != '+' && c != '.') {
      break;
    }
    ++at_;
  }
  if (at_ == token_) fail_here(what);
  return text_.substr(token_, at_ - token_);
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                     static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_name(std::string& out, std::string_view name) {
  bool word = !name.empty() && starts_word(name[0]);
  for (const char c : name) word = word && in_word(c);
  if (word) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

}  // namespace berth
