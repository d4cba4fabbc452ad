#include "graph/parse_attr.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/text_value.h"

namespace berth {

namespace {

// Keeps the search for repeated names short.
constexpr size_t kMaxAttrs = 256;

const char* type_name(size_t index) {
  constexpr const char* kNames[std::variant_size_v<AttrValue>] = {
      "true or false",   "an integer",   "a number with '.' or 'e'",
      "a quoted string", "a dtype",      "shape[...]",
      "ints[...]",       "doubles[...]", "strings[...]",
      "tensor(...)",     "@function"};
  return kNames[index];
}

// The catalogue knows the names and types of its attributes.
void check_attr(TextLine& line, int64_t column, const OpDef& op,
                const std::string& name, const AttrValue& value) {
  if (op.infer() == nullptr) return;
  for (const AttrDef& a : op.attrs()) {
    if (a.name != name) continue;
    if (a.default_value.index() == value.index()) return;
    line.fail_at(
        column,
        fmt::format("attribute '{}' of {} has another type, expected "
                    "{}",
                    name, op.name(), type_name(a.default_value.index())));
  }
  if (op.any_attrs()) return;
  std::string known;
  for (const AttrDef& a : op.attrs()) {
    known += (known.empty() ? "" : ", ") + a.name;
  }
  line.fail_at(column,
               fmt::format("{} has no attribute '{}', expected {}", op.name(),
                           name, known.empty() ? "none" : known));
}

AttrValue parse_number(TextLine& line) {
  TextLine copy = line;
  const std::string_view digits = copy.number("a number");
  if (digits.find_first_of(".einx") != std::string_view::npos) {
    return parse_double(line);
  }
  return line.integer("an integer");
}

template <class T, class Read>
std::vector<T> parse_list(TextLine& line, Read read) {
  std::vector<T> list;
  line.expect("[");
  while (!line.take("]")) {
    if (!list.empty()) line.expect(",");
    list.push_back(read(line));
  }
  return list;
}

AttrValue parse_function_name(TextLine& line, const TextNames& names,
                              Callees& callees) {
  const std::string name = line.name("the name of a function");
  const TextNames::Function& f = names.function(line, name);
  callees.nodes += f.nodes;
  callees.depth = std::max(callees.depth, f.depth);
  return f.callable;
}

AttrValue parse_value(TextLine& line, const TextNames& names,
                      Callees& callees) {
  if (line.at_quote()) return line.quoted("a string");
  if (line.take("@")) return parse_function_name(line, names, callees);
  if (line.at_number()) return parse_number(line);
  if (line.take_word("true")) return true;
  if (line.take_word("false")) return false;
  if (line.take_word("shape")) return parse_shape(line);
  if (line.take_word("tensor")) return parse_tensor(line);
  if (line.take_word("ints")) {
    return parse_list<int64_t>(
        line, [](TextLine& l) { return l.integer("an integer"); });
  }
  if (line.take_word("doubles")) return parse_list<double>(line, parse_double);
  if (line.take_word("strings")) {
    return parse_list<std::string>(
        line, [](TextLine& l) { return l.quoted("a string"); });
  }
  if (line.at_special_number()) return parse_double(line);
  if (!line.at_word()) line.fail_here("the value of an attribute");
  return parse_dtype(line);
}

}  // namespace

void parse_attrs(TextLine& line, const TextNames& names, Node& node,
                 Callees& callees) {
  std::vector<Attrs::Pair> pairs;
  while (!line.take("}")) {
    if (!pairs.empty()) line.expect(",");
    const int64_t column = line.column();
    std::string name = line.name("the name of an attribute");
    line.expect("=");
    if (pairs.size() == kMaxAttrs) {
      line.fail_at(column, fmt::format("more than {} attributes, expected "
                                       "fewer",
                                       kMaxAttrs));
    }
    for (const auto& [other, value] : pairs) {
      if (other != name) continue;
      line.fail_at(column, fmt::format("attribute '{}' again, expected "
                                       "distinct names",
                                       name));
    }
    AttrValue value = parse_value(line, names, callees);
    check_attr(line, column, *node.op, name, value);
    pairs.emplace_back(std::move(name), std::move(value));
  }
  node.attrs = AttrsRef(std::move(pairs));
}

void check_required(const TextLine& line, int64_t column, const Node& node) {
  for (const AttrDef& a : node.op->attrs()) {
    if (!a.required) continue;
    if (node.attrs.get() && node.attrs.get()->find(a.name)) continue;
    line.fail_at(column, fmt::format("{} without attribute '{}', expected {}",
                                     node.op->name(), a.name,
                                     type_name(a.default_value.index())));
  }
}

}  // namespace berth
