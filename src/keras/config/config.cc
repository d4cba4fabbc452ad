// Config: a value as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/saving.h"

namespace berth::keras {

struct Config::Json {
  nlohmann::ordered_json value;
};

namespace {

using JsonValue = nlohmann::ordered_json;

constexpr size_t kMaxConfigBytes = size_t{256} << 20;
constexpr int kMaxConfigDepth = 200;

// Copying a value or printing it recurses as deep as the value is.
bool too_deep(const std::string& json) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxConfigDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string place_in(const std::string& text, size_t byte) {
  const size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
  const size_t line_begin = text.substr(0, at).rfind('\n') + 1;
  return fmt::format("line {}, column {}",
                     std::count(text.begin(), end, '\n') + 1,
                     at - line_begin + 1);
}

[[noreturn]] void fail_parse(const std::string& what, Site site) {
  throw errors::InvalidArgument(fmt::format(
      "config: {}{}; expected JSON as get_config() or to_json() wrote it", what,
      where_text(nullptr, site)));
}

JsonValue parsed(const std::string& text, Site site) {
  if (text.size() > kMaxConfigBytes) {
    fail_parse(fmt::format("the text has {} bytes, more than {}", text.size(),
                           kMaxConfigBytes),
               site);
  }
  if (too_deep(text)) {
    fail_parse(
        fmt::format("the text is nested deeper than {}", kMaxConfigDepth),
        site);
  }
  try {
    return JsonValue::parse(text);
  } catch (const JsonValue::parse_error& e) {
    fail_parse(fmt::format("this is no JSON at {}", place_in(text, e.byte)),
               site);
  } catch (const JsonValue::exception&) {  // a number beyond all doubles
    fail_parse("a number is beyond 1e308", site);
  }
}

// A few words.
std::string shown(const JsonValue& v) {
  if (v.is_object()) return "an object";
  if (v.is_array()) return fmt::format("a list of {}", v.size());
  if (!v.is_string()) return v.dump();
  const auto& text = v.get_ref<const std::string&>();
  return fmt::format("\"{}\"{}", text.substr(0, 60),
                     text.size() > 60 ? "..." : "");
}

[[noreturn]] void fail_kind(const JsonValue& v, const char* expected) {
  throw errors::InvalidArgument(
      fmt::format("config: found {}, expected {}", shown(v), expected));
}

}  // namespace

Config::Config(std::unique_ptr<Json> json) : json_(std::move(json)) {}
Config::Config() : Config(std::make_unique<Json>()) {
  json_->value = JsonValue::object();
}
Config::Config(std::nullptr_t) : Config(std::make_unique<Json>()) {}
Config::Config(bool value)
    : Config(std::make_unique<Json>(Json{JsonValue(value)})) {}
Config::Config(int64_t value)
    : Config(std::make_unique<Json>(Json{JsonValue(value)})) {}
Config::Config(double value)
    : Config(std::make_unique<Json>(Json{JsonValue(value)})) {}
Config::Config(const char* value) : Config(std::string(value ? value : "")) {}
Config::Config(const std::string& value)
    : Config(std::make_unique<Json>(Json{JsonValue(value)})) {}
Config::Config(const std::vector<Config>& list)
    : Config(std::make_unique<Json>(Json{JsonValue::array()})) {
  for (const Config& c : list) json_->value.push_back(c.json_->value);
}
Config::Config(const std::vector<int64_t>& list)
    : Config(std::make_unique<Json>(Json{JsonValue::array()})) {
  for (int64_t v : list) json_->value.push_back(v);
}
Config::Config(const std::vector<std::string>& list)
    : Config(std::make_unique<Json>(Json{JsonValue::array()})) {
  for (const std::string& v : list) json_->value.push_back(v);
}
Config::Config(std::initializer_list<std::pair<std::string, Config>> fields)
    : Config() {
  for (const auto& [name, value] : fields) set(name, value);
}
Config::~Config() = default;
Config::Config(const Config& other)
    : Config(std::make_unique<Json>(*other.json_)) {}
Config::Config(Config&& other) noexcept = default;
Config& Config::operator=(Config other) noexcept {
  json_ = std::move(other.json_);
  return *this;
}

Config Config::parse(const std::string& json, Site site) {
  return Config(std::make_unique<Json>(Json{parsed(json, site)}));
}
std::string Config::str(int indent) const {
  constexpr auto kReplace = JsonValue::error_handler_t::replace;
  return json_->value.dump(indent, ' ', false, kReplace);
}

Config::Kind Config::kind() const {
  const JsonValue& v = json_->value;
  if (v.is_object()) return Kind::kObject;
  if (v.is_array()) return Kind::kList;
  if (v.is_string()) return Kind::kString;
  if (v.is_boolean()) return Kind::kBool;
  // What no int64 holds is not whole for anyone here.
  if (v.is_number_unsigned() && v.get<uint64_t>() > INT64_MAX) {
    return Kind::kDouble;
  }
  if (v.is_number_integer()) return Kind::kInt;
  return v.is_number() ? Kind::kDouble : Kind::kNull;
}

bool Config::as_bool() const {
  if (kind() != Kind::kBool) fail_kind(json_->value, "true or false");
  return json_->value.get<bool>();
}
int64_t Config::as_int() const {
  if (kind() != Kind::kInt) fail_kind(json_->value, "a whole number");
  return json_->value.get<int64_t>();
}
double Config::as_double() const {
  if (!json_->value.is_number()) fail_kind(json_->value, "a number");
  return json_->value.get<double>();
}
std::string Config::as_string() const {
  if (kind() != Kind::kString) fail_kind(json_->value, "a text");
  return json_->value.get<std::string>();
}
std::vector<Config> Config::as_list() const {
  if (kind() != Kind::kList) fail_kind(json_->value, "a list");
  std::vector<Config> list;
  for (const JsonValue& v : json_->value) {
    list.push_back(Config(std::make_unique<Json>(Json{v})));
  }
  return list;
}

bool Config::contains(const std::string& name) const {
  return json_->value.contains(name);
}
Config Config::at(const std::string& name) const {
  const JsonValue& v = json_->value;
  if (!v.is_object()) fail_kind(v, "an object");
  const auto it = v.find(name);
  if (it != v.end()) return Config(std::make_unique<Json>(Json{*it}));
  std::string known;
  for (const std::string& n : names()) known += (known.empty() ? "" : ", ") + n;
  throw errors::NotFound(fmt::format(
      "config: there is no field \"{}\"; there are: {}", name, known));
}
std::vector<std::string> Config::names() const {
  std::vector<std::string> names;
  if (!json_->value.is_object()) return names;
  for (const auto& item : json_->value.items()) names.push_back(item.key());
  return names;
}
Config& Config::set(const std::string& name, const Config& value) {
  if (!json_->value.is_object()) fail_kind(json_->value, "an object");
  // A copy first: `value` may be this object.
  JsonValue copy = value.json_->value;
  json_->value[name] = std::move(copy);
  return *this;
}
bool Config::operator==(const Config& other) const {
  return json_->value == other.json_->value;
}

}  // namespace berth::keras
