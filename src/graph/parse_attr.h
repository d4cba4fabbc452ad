// Attributes of a graph text's nodes. One thread.

#ifndef BERTH_GRAPH_PARSE_ATTR_H_
#define BERTH_GRAPH_PARSE_ATTR_H_

#include "graph/graph.h"
#include "graph/parse_decl.h"

namespace berth {

// What the functions that a node's attributes name add to it.
struct Callees {
  int64_t nodes = 0;
  int32_t depth = 0;
};

// Reads "name = value, ... }" into node.attrs, after the brace. Those of an
// op of the catalogue must have the names and types that it knows.
void parse_attrs(TextLine& line, const TextNames& names, Node& node,
                 Callees& callees);

// Throws through `line`, at `column`, when an attribute without a default is
// missing.
void check_required(const TextLine& line, int64_t column, const Node& node);

}  // namespace berth

#endif  // BERTH_GRAPH_PARSE_ATTR_H_
