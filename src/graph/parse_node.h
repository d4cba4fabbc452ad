// GraphReader: builds one graph from the node and return lines of a text, the
// main one or the body of a function. One thread.

#ifndef BERTH_GRAPH_PARSE_NODE_H_
#define BERTH_GRAPH_PARSE_NODE_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/parse_attr.h"

namespace berth {

class GraphReader {
 public:
  explicit GraphReader(const TextNames& names) : names_(names) {}

  // Read the rest of a line after the word "node" or "return".
  void read_node(TextLine& line);
  void read_return(TextLine& line);
  // Resolves what refers forward, once all lines are read.
  void finish();

  Graph graph;
  std::vector<NodeCost> costs;  // empty, or one per node once finished
  int64_t nested_nodes = 0;     // with those of callees, at each call
  int32_t depth = 1;            // 1 + that of the deepest callee

 private:
  // A place in the text, for errors found later.
  struct Place {
    int32_t node = -1;
    int64_t line = 0, column = 0;
    std::string name;
  };

  int32_t find_node(TextLine& line, const std::string& name) const;
  ValueRef read_value(TextLine& line) const;
  void read_inputs(TextLine& line, Node& node);
  void read_outputs(TextLine& line, Node& node);
  void read_clauses(TextLine& line, Node& node, NodeCost& cost);
  void check(TextLine& line, const Node& node) const;
  void check_output(TextLine& line, const Node& node, size_t i,
                    const OutSpec& rule) const;
  void check_declared(TextLine& line, const Node& node) const;
  void check_call(TextLine& line, const Node& node) const;
  void add(TextLine& line, Node node, NodeCost cost, const Callees& callees);
  void collect_args();

  const TextNames& names_;
  std::unordered_map<std::string, int32_t> nodes_;
  std::vector<Place> followers_, args_;
  // Where the parts of the line that is read begin.
  int64_t name_column_ = 0, op_column_ = 0;
  std::vector<int64_t> input_columns_, output_columns_;
};

}  // namespace berth

#endif  // BERTH_GRAPH_PARSE_NODE_H_
