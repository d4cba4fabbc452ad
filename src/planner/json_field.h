// Field: a value of a JSON file that knows its path.
//
// Readers use it to take files apart; errors become errors::InvalidArgument
// "FILE: devices[2].memory: found 5, expected a string such as ...". A view:
// the document must outlive it. One thread.

#ifndef BERTH_PLANNER_JSON_FIELD_H_
#define BERTH_PLANNER_JSON_FIELD_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "planner/units.h"

namespace berth {

// Parses a text. Throws errors::InvalidArgument with line and column.
nlohmann::json parse_json(const std::string& text, const std::string& file);

class Field {
 public:
  // The whole document.
  Field(const nlohmann::json& value, std::string file)
      : value_(&value), file_(std::move(file)) {}

  const nlohmann::json& json() const { return *value_; }

  // For an object: a field that must exist, or may; null counts as missing.
  Field operator[](const char* name) const;
  std::optional<Field> find(const char* name) const;
  // Rejects names that are not among these.
  void only(std::initializer_list<const char*> names) const;
  // Calls fn(name, field) for every field.
  void each(
      const std::function<void(const std::string&, const Field&)>& fn) const;

  // The elements of the array `name`; none if it is missing.
  std::vector<Field> items(const char* name) const;

  // For an array.
  std::vector<Field> items() const;
  size_t size() const;
  Field operator[](size_t index) const;
  // All its elements: numbers, "inf" or "-inf".
  std::vector<double> numbers() const;

  std::string text() const;  // at most 1000 bytes, not empty
  double number() const;     // finite
  int64_t integer(int64_t least, int64_t most) const;
  bool flag() const;

  // For an object: the quantity `name` ("5us"), or the number of the field
  // `name` + unit_suffix(kind).
  std::optional<double> quantity(const char* name, Quantity kind) const;

  // Returns fn(), whose errors::InvalidArgument gets this path.
  template <class Fn>
  auto parsed(const Fn& fn) const {
    try {
      return fn();
    } catch (const errors::InvalidArgument& e) {
      fail_with(e.what());
    }
  }

  // Throws "FILE: PATH: found ..., expected `expected`".
  [[noreturn]] void fail(const std::string& expected) const;
  // Throws "FILE: PATH: `what`".
  [[noreturn]] void fail_with(const std::string& what) const;

 private:
  Field(const nlohmann::json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
  const nlohmann::json& object() const;
  Field child(const std::string& name, const nlohmann::json& value) const;

  const nlohmann::json* value_;
  std::string file_, path_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_JSON_FIELD_H_
