#include "io/csv_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "berth/errors.h"
#include "tensor/visit_dtype.h"

namespace berth::io {
namespace {

std::string_view csv_trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) {
    s.remove_prefix(1);
  }
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) {
    s.remove_suffix(1);
  }
  return s;
}

// What from_chars leaves out: numbers too large or small for the type.
template <class T>
bool far_number(std::string_view s, T* to) {
  if constexpr (std::is_floating_point_v<T>) {
    const std::string text(s);
    char* end = nullptr;
    *to = static_cast<T>(std::strtod(text.c_str(), &end));
    return end == text.c_str() + text.size();
  }
  return false;
}

template <class T>
bool csv_number(std::string_view s, void* to) {
  s = csv_trimmed(s);
  if (s.size() > 1 && s[0] == '+' && s[1] != '-') s.remove_prefix(1);
  T v{};
  const auto [p, code] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (code == std::errc::result_out_of_range) {
    if (!far_number(s, &v)) return false;
  } else if (code != std::errc() || p != s.data() + s.size()) {
    return false;
  }
  std::memcpy(to, &v, sizeof(T));
  return true;
}

bool csv_bool(std::string_view s, void* to) {
  s = csv_trimmed(s);
  const bool yes = s == "1" || s == "true" || s == "True" || s == "TRUE";
  if (!yes && s != "0" && s != "false" && s != "False" && s != "FALSE") {
    return false;
  }
  *static_cast<bool*>(to) = yes;
  return true;
}

template <class T>
bool quick(const char** p, const char* end, char delim, void* to) {
  T v{};
  const auto [q, code] = std::from_chars(*p, end, v);
  // The end of the field must be in sight.
  if (code != std::errc() || q == end) return false;
  if (*q != delim && *q != '\n' && *q != '\r') return false;
  std::memcpy(to, &v, sizeof(T));
  *p = q;
  return true;
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string s;
  for (char c : text.substr(0, kMost)) s += c >= ' ' && c < 0x7f ? c : '?';
  return s + (text.size() > kMost ? "..." : "");
}

}  // namespace

bool parse_csv_number(std::string_view text, DType dtype, void* to) {
  if (dtype == bool_) return csv_bool(text, to);
  if (size_of(dtype) == 0) return false;
  return visit_dtype(dtype, "CSV", [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      return csv_number<T>(text, to);
    } else {
      return false;
    }
  });
}

void CsvReader::begin(WindowReader* reader, bool header) {
  line_ = 1;
  if (reader->ensure(3).starts_with("\xef\xbb\xbf")) reader->consume(3);
  if (!header) return;
  std::vector<std::string> ignored;
  texts(reader, &ignored);
}

bool CsvReader::prepare(WindowReader* reader) {
  reader_ = reader;
  new_lines_ = 0;
  return !reader->view().empty() || reader->more();
}

bool CsvReader::next(WindowReader* reader, size_t row_index, CsvSink* to) {
  bool last = false;
  for (;;) {
    if (!prepare(reader)) return false;
    const std::string_view text = reader->view();
    Cursor c{text.data(), text.data() + text.size(), last};
    // A blank line is not a row, except of one column.
    if ((*c.p == '\n' || *c.p == '\r') &&
        (format_->columns.size() > 1 || format_->open_ended)) {
      if (*c.p == '\r' && text.size() == 1 && reader->more()) continue;
      line_ += 1;
      reader->consume(text.starts_with("\r\n") ? 2 : 1);
      continue;
    }
    if (row(&c, row_index, to) == Walk::kRow) {
      reader->consume(static_cast<size_t>(c.p - text.data()));
      line_ += 1 + new_lines_;
      return true;
    }
    to->rewind(row_index);
    if (!reader->more()) last = true;
  }
}

CsvReader::Walk CsvReader::row(Cursor* c, size_t row, CsvSink* to) {
  const size_t known = format_->columns.size();
  for (size_t column = 0;; ++column) {
    Walk w;
    if (column < known && format_->columns[column] >= 0) {
      w = value(c, column, row, to);
    } else {
      if (column >= known && !format_->open_ended) {
        bad(column, fmt::format("is one too many; expected {} per row", known));
      }
      w = skip_field(c);
    }
    if (w == Walk::kMore) return w;
    const bool at_end = c->p == c->end;
    if (!at_end && *c->p == format_->delim) {
      ++c->p;
      if (c->p == c->end && !c->last) return Walk::kMore;
      continue;
    }
    if (!at_end) {  // after "\n" or "\r\n"
      if (*c->p == '\r') {
        if (c->end - c->p < 2 && !c->last) return Walk::kMore;
        if (c->end - c->p >= 2 && c->p[1] == '\n') ++c->p;
      }
      ++c->p;
    }
    if (column + 1 < known) {
      bad(column + 1, fmt::format("is missing: the row has {} fields; expected "
                                  "{}",
                                  column + 1, known));
    }
    return Walk::kRow;
  }
}

CsvReader::Walk CsvReader::value(Cursor* c, size_t column, size_t row,
                                 CsvSink* to) {
  const auto index = static_cast<size_t>(format_->columns[column]);
  const CsvField& field = format_->fields[index];
  if (field.dtype != string_ &&
      quick_number(c, field, to->number(index, row))) {
    return Walk::kRow;
  }
  std::string_view text;
  if (scan(c, &text) == Walk::kMore) return Walk::kMore;
  store(text, field, column, index, row, to);
  return Walk::kRow;
}

bool CsvReader::quick_number(Cursor* c, const CsvField& field, void* to) {
  if (format_->na_is_number) return false;
  switch (field.dtype) {
    case float32:
      return quick<float>(&c->p, c->end, format_->delim, to);
    case float64:
      return quick<double>(&c->p, c->end, format_->delim, to);
    case int32:
      return quick<int32_t>(&c->p, c->end, format_->delim, to);
    case int64:
      return quick<int64_t>(&c->p, c->end, format_->delim, to);
    default:
      return false;
  }
}

CsvReader::Walk CsvReader::skip_field(Cursor* c) {
  std::string_view ignored;
  return scan(c, &ignored);
}

CsvReader::Walk CsvReader::scan(Cursor* c, std::string_view* text) {
  const char* begin = c->p;
  const char delim = format_->delim;
  if (!format_->quotes || begin == c->end || *begin != '"') {
    const char* p = begin;
    while (p != c->end && *p != delim && *p != '\n' && *p != '\r') ++p;
    if (p == c->end && !c->last) return Walk::kMore;
    c->p = p;
    *text = {begin, static_cast<size_t>(p - begin)};
    return Walk::kRow;
  }
  unquoted_.clear();
  const char* p = begin + 1;
  for (;;) {
    const char* quote = static_cast<const char*>(
        std::memchr(p, '"', static_cast<size_t>(c->end - p)));
    if (quote == nullptr || (quote + 1 == c->end && !c->last)) {
      if (!c->last) return Walk::kMore;
      throw errors::InvalidArgument(fmt::format(
          "{}, line {}: the file ends within quotes; expected a closing \"",
          reader_->name(), line_));
    }
    unquoted_.append(p, quote);
    p = quote + 1;
    if (p == c->end || *p != '"') break;
    unquoted_ += '"';
    ++p;
  }
  if (p != c->end && *p != delim && *p != '\n' && *p != '\r') {
    throw errors::InvalidArgument(fmt::format(
        "{}, line {}: \"{}\" follows a closing quote; expected the end of the "
        "field: double the quotes inside of it",
        reader_->name(), line_, shown({p, 1})));
  }
  new_lines_ += std::count(unquoted_.begin(), unquoted_.end(), '\n');
  c->p = p;
  *text = unquoted_;
  return Walk::kRow;
}

void CsvReader::store(std::string_view text, const CsvField& field,
                      size_t column, size_t index, size_t row, CsvSink* to) {
  if (text.empty() ||
      (!format_->na_value.empty() && text == format_->na_value)) {
    if (field.required) {
      bad(column, "is empty; expected a value, or give the column a default");
    }
    if (field.dtype == string_) {
      to->text(index, field.text);
    } else {
      std::memcpy(to->number(index, row), &field.number_bits,
                  size_of(field.dtype));
    }
    return;
  }
  if (field.dtype == string_) return to->text(index, text);
  if (parse_csv_number(text, field.dtype, to->number(index, row))) return;
  bad(column,
      fmt::format(
          "is \"{}\"; expected {} {}", shown(text),
          is_integer(field.dtype) && !is_unsigned(field.dtype) ? "an" : "a",
          name_of(field.dtype)));
}

void CsvReader::bad(size_t column, const std::string& problem) const {
  std::string name;
  if (column < format_->columns.size() && format_->columns[column] >= 0) {
    name = format_->fields[static_cast<size_t>(format_->columns[column])].name;
    if (!name.empty()) name = " (" + name + ")";
  }
  throw errors::InvalidArgument(fmt::format("{}, line {}: column {}{} {}",
                                            reader_->name(), line_, column,
                                            name, problem));
}

bool CsvReader::skip_line(WindowReader* reader) {
  ++line_;
  for (;;) {
    const std::string_view text = reader->view();
    const size_t end = text.find('\n');
    if (end != text.npos) {
      reader->consume(end + 1);
      return true;
    }
    reader->consume(text.size());
    if (!reader->more()) return false;
  }
}

bool CsvReader::texts(WindowReader* reader, std::vector<std::string>* fields) {
  bool last = false;
  for (;;) {
    if (!prepare(reader)) return false;
    const std::string_view text = reader->view();
    Cursor c{text.data(), text.data() + text.size(), last};
    fields->clear();
    bool more = false, done = false;
    while (!done && !more) {
      std::string_view field;
      if (scan(&c, &field) == Walk::kMore) {
        more = true;
        break;
      }
      fields->emplace_back(field);
      if (c.p != c.end && *c.p == format_->delim) {
        ++c.p;
        continue;
      }
      done = true;
    }
    const bool carriage = c.p != c.end && *c.p == '\r';
    if (carriage) ++c.p;
    if (!more && (c.p != c.end || last)) {
      if (c.p != c.end && *c.p == '\n') ++c.p;
      reader->consume(static_cast<size_t>(c.p - text.data()));
      line_ += 1 + new_lines_;
      return true;
    }
    if (!reader->more()) last = true;
  }
}

}  // namespace berth::io
