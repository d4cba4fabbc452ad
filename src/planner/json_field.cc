#include "planner/json_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/infinity.h"

namespace berth {

using Json = nlohmann::json;

namespace {

// A few words. (dump() would follow any depth.)
std::string show_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  return fmt::format("\"{}\"{}", text.substr(0, 60),
                     text.size() > 60 ? "..." : "");
}

}  // namespace

Json parse_json(const std::string& text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    const size_t at = std::min(e.byte > 0 ? e.byte - 1 : 0, text.size());
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t begin_of_line = text.substr(0, at).rfind('\n') + 1;
    throw errors::InvalidArgument(fmt::format(
        "{}: line {}, column {}: this is no JSON; expected one "
        "object",
        file, std::count(text.begin(), end, '\n') + 1, at - begin_of_line + 1));
  } catch (const Json::exception& e) {  // a number beyond the range of double
    const std::string what = e.what();  // "[...] number overflow ..."
    const size_t id = what.find("] ");
    throw errors::InvalidArgument(
        fmt::format("{}: {}; expected numbers up to 1e308", file,
                    id == std::string::npos ? what : what.substr(id + 2)));
  }
}

void Field::fail_with(const std::string& what) const {
  throw errors::InvalidArgument(fmt::format(
      "{}: {}: {}", file_, path_.empty() ? "the document" : path_, what));
}

void Field::fail(const std::string& expected) const {
  fail_with(fmt::format("found {}, expected {}", show_json(*value_), expected));
}

const Json& Field::object() const {
  if (!value_->is_object()) fail("an object");
  return *value_;
}

Field Field::child(const std::string& name, const Json& value) const {
  return {value, file_, path_.empty() ? name : path_ + "." + name};
}

Field Field::operator[](const char* name) const {
  const auto found = find(name);
  if (found) return *found;
  std::string there;
  for (const auto& [key, unused] : value_->items()) {
    if (there.size() < 100) there += (there.empty() ? "" : ", ") + key;
  }
  fail_with(fmt::format("has no \"{}\"; expected one beside {}", name,
                        there.empty() ? "nothing else" : there));
}

std::optional<Field> Field::find(const char* name) const {
  const auto it = object().find(name);
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return child(name, *it);
}

void Field::only(std::initializer_list<const char*> names) const {
  for (const auto& [key, unused] : object().items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    std::string all;
    for (const char* name : names)
      all += (all.empty() ? "" : ", ") + std::string(name);
    fail_with(fmt::format("found a field \"{}\", expected only {}",
                          key.substr(0, 60), all));
  }
}

void Field::each(
    const std::function<void(const std::string&, const Field&)>& fn) const {
  for (const auto& [key, value] : object().items()) fn(key, child(key, value));
}

std::vector<Field> Field::items(const char* name) const {
  const auto array = find(name);
  return array ? array->items() : std::vector<Field>();
}

std::vector<Field> Field::items() const {
  std::vector<Field> items;
  for (size_t i = 0; i < size(); ++i) items.push_back((*this)[i]);
  return items;
}

size_t Field::size() const {
  if (!value_->is_array()) fail("an array");
  return value_->size();
}

Field Field::operator[](size_t index) const {
  if (index >= size()) fail(fmt::format("more than {} elements", index));
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

std::vector<double> Field::numbers() const {
  std::vector<double> all;
  all.reserve(size());
  for (size_t i = 0; i < value_->size(); ++i) {
    const Json& x = (*value_)[i];
    if (x.is_number()) {
      all.push_back(x.get<double>());
    } else if (x == "inf") {
      all.push_back(kInfinity);
    } else if (x == "-inf") {
      all.push_back(-kInfinity);
    } else {
      (*this)[i].fail("a number");
    }
  }
  return all;
}

std::string Field::text() const {
  if (!value_->is_string()) fail("a string");
  const auto& text = value_->get_ref<const std::string&>();
  if (text.empty() || text.size() > 1000) fail("a string of 1 to 1000 bytes");
  return text;
}

double Field::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) {
    fail("a number");
  }
  return value_->get<double>();
}

int64_t Field::integer(int64_t least, int64_t most) const {
  const auto range = [&] { return fmt::format("{} to {}", least, most); };
  if (!value_->is_number_integer()) fail("a whole number, " + range());
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX) {
    fail(range());
  }
  const auto number = value_->get<int64_t>();
  if (number < least || number > most) fail(range());
  return number;
}

bool Field::flag() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::optional<double> Field::quantity(const char* name, Quantity kind) const {
  const std::string plain = std::string(name) + unit_suffix(kind);
  const auto with_unit = find(name), number = find(plain.c_str());
  if (with_unit && number) {
    number->fail_with(fmt::format("stands beside \"{}\"; expected one", name));
  }
  if (number) {
    if (number->number() < 0) number->fail("0 or more");
    return number->number();
  }
  if (!with_unit) return std::nullopt;
  return with_unit->parsed(
      [&] { return parse_quantity(with_unit->text(), kind); });
}

}  // namespace berth
