// Reads graph texts: docs/graph-format.md.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/body.h"
#include "graph/graph_text.h"
#include "graph/parse_node.h"

namespace berth {

namespace {

class Parser {
 public:
  GraphText run(std::string_view text) {
    bool version = false;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      TextLine line(text.substr(0, end), ++number_);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.at_end() || line.take("#")) continue;
      if (version) {
        parse_line(line);
      } else {
        parse_version(line);
        version = true;
      }
      if (!line.at_end()) line.fail_here("the end of the line");
    }
    TextLine end("", number_ + 1);
    if (!version) parse_version(end);
    if (body_) {
      end.fail(
          fmt::format("the body of function '{}' does not end, expected "
                      "'}}'",
                      open_->name()));
    }
    main_.finish();
    text_.graph.nodes.swap(main_.graph.nodes);
    text_.graph.args.swap(main_.graph.args);
    text_.graph.outputs.swap(main_.graph.outputs);
    text_.costs = std::move(main_.costs);
    return std::move(text_);
  }

 private:
  static void parse_version(TextLine& line) {
    if (!line.take_word("berth-graph")) line.fail_here("'berth-graph 1'");
    const int64_t version = line.integer("a version");
    if (version != 1) {
      line.fail(fmt::format("graph format {}, expected 1", version));
    }
  }

  GraphReader& reader() { return body_ ? *body_ : main_; }

  void parse_line(TextLine& line) {
    if (body_ && line.take("}")) {
      end_body(line);
      return;
    }
    if (!line.at_word()) line.fail_here("a statement");
    const std::string_view word = line.word("");
    if (word == "node") {
      reader().read_node(line);
    } else if (word == "return") {
      reader().read_return(line);
    } else if (body_) {
      line.fail(
          fmt::format("'{}' begins no statement of a function, expected node, "
                      "return or '}}'",
                      word));
    } else {
      parse_declaration(word, line);
    }
  }

  void parse_declaration(std::string_view word, TextLine& line) {
    if (word == "op") {
      declare_op(line);
    } else if (word == "kernel") {
      text_.kernels.push_back(parse_kernel(line, names_));
    } else if (word == "class") {
      declare(line, text_.classes, parse_class, seen_classes_);
      class_types_.emplace(text_.classes.back().name,
                           text_.classes.back().type);
    } else if (word == "device") {
      declare_device(line);
    } else if (word == "link") {
      declare_link(line);
    } else if (word == "function") {
      declare_function(line);
    } else if (word == "local") {
      if (!text_.local_task.empty()) line.fail("'local' again, expected one");
      text_.local_task = parse_local(line);
    } else if (word == "order") {
      if (!text_.type_order.empty()) line.fail("'order' again, expected one");
      text_.type_order = parse_order(line);
    } else if (word == "graph") {
      text_.graph.name = line.name("the name of the graph");
    } else {
      line.fail(
          fmt::format("'{}' begins no statement, expected graph, op, kernel, "
                      "class, device, link, local, order, function, node or "
                      "return",
                      word));
    }
  }

  void declare_op(TextLine& line) {
    const int64_t column = line.column();
    auto op = parse_op(line);
    names_.add_op(line, column, *op);
    text_.graph.declared_ops.push_back(std::move(op));
  }

  // Reads a declaration whose name must not have been there.
  template <class T>
  static void declare(TextLine& line, std::vector<T>& list,
                      T (*parse)(TextLine&),
                      std::unordered_set<std::string>& seen) {
    const int64_t column = line.column();
    T declared = parse(line);
    if (!seen.insert(declared.name).second) {
      line.fail_at(column, fmt::format("'{}' again, expected one declaration",
                                       declared.name));
    }
    list.push_back(std::move(declared));
  }

  void declare_device(TextLine& line) {
    const int64_t column = line.column();
    declare(line, text_.devices, parse_device, seen_devices_);
    const DeviceDecl& device = text_.devices.back();
    for (const std::string& part : device.parts) {
      if (seen_devices_.contains(part) && part != device.name) continue;
      line.fail_at(column, fmt::format("device '{}' is not declared, expected "
                                       "one as a line above writes it",
                                       part));
    }
    const auto of = class_types_.find(device.device_class);
    if (of == class_types_.end() || is_of_type(device.name, of->second)) return;
    line.fail_at(column, fmt::format("'{}' is no {}, expected one for class "
                                     "'{}'",
                                     device.name, of->second, of->first));
  }

  void declare_link(TextLine& line) {
    const int64_t column = line.column();
    LinkDecl link = parse_link(line);
    for (const std::string* name : {&link.from, &link.to}) {
      if (seen_devices_.contains(*name)) continue;
      line.fail_at(column,
                   fmt::format("device '{}' is not declared, expected the "
                               "name of a device as a line above writes it",
                               *name));
    }
    if (!seen_links_.insert(link.from + '\n' + link.to).second) {
      line.fail_at(column, fmt::format("the link from '{}' to '{}' again, "
                                       "expected one declaration",
                                       link.from, link.to));
    }
    text_.links.push_back(std::move(link));
  }

  void declare_function(TextLine& line) {
    auto f = parse_function(line, names_);
    if (line.take("{")) {
      names_.open_function(f->name());
      open_ = std::move(f);
      body_.emplace(names_);
      return;
    }
    add_function({std::move(f)});
  }

  void add_function(TextNames::Function f) {
    text_.functions.push_back(f.callable);
    names_.add_function(std::move(f));
  }

  void end_body(TextLine& line) {
    body_->finish();
    if (!body_->costs.empty()) {
      line.fail("time or bytes in a function, expected them on calls of it");
    }
    body_->graph.name = open_->name();
    TextNames::Function f = {nullptr, body_->nested_nodes, body_->depth};
    f.callable = std::make_shared<Body>(std::move(body_->graph));
    body_.reset();
    if (signature_of(*f.callable) != open_->signature()) {
      line.fail(fmt::format(
          "the arguments or results of function '{}' are not those of its "
          "declaration, expected the same",
          open_->name()));
    }
    open_ = nullptr;
    names_.open_function("");
    add_function(std::move(f));
  }

  GraphText text_;
  TextNames names_;
  GraphReader main_{names_};
  std::optional<GraphReader> body_;         // while a function is open
  std::shared_ptr<DeclaredFunction> open_;  // its declaration
  std::unordered_set<std::string> seen_classes_, seen_devices_, seen_links_;
  std::unordered_map<std::string, std::string> class_types_;
  int64_t number_ = 0;
};

}  // namespace

GraphText parse_text(std::string_view text) { return Parser().run(text); }

Graph parse_graph(std::string_view text) {
  return std::move(parse_text(text).graph);
}

}  // namespace berth
