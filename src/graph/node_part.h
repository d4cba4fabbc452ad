// NodePart: which slices of a batch a node has, as numbers and as text.
//
// Slice k of `total` slices of a batch begins at example batch * k / total,
// on every replica: so bits are equal for any number of replicas. Thread-safe:
// functions of their arguments.

#ifndef BERTH_GRAPH_NODE_PART_H_
#define BERTH_GRAPH_NODE_PART_H_

#include <memory>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "graph/text_line.h"

namespace berth {

// True when bits must not depend on the replicas: the node has slices.
inline bool has_slices(const NodePart* part) { return part && part->total > 0; }

// True when both have the same slices of the same batch, or neither has any.
bool same_slices(const NodePart* a, const NodePart* b);

// The examples of the slices of a part that has some.
int64_t examples_of(const NodePart& part);

// True when the slices of a part have borders along an axis of `length`: it has
// so many elements for each example, or one for so many.
bool can_cut_slices(const NodePart& part, int64_t length);

// Where slice `k` of the part (of part.count; part.count: the end) begins along
// such an axis.
int64_t slice_begin(const NodePart& part, int64_t length, int k);

// How many times an op on the whole batch is the op of this part; 1 when the
// part has no slices.
double whole_over_part(const NodePart* part);

// The slices of a part without what belongs to its op alone; null for none.
std::shared_ptr<const NodePart> slices_of(
    const std::shared_ptr<const NodePart>& part);

// The split signature by which the part of a node was cut out; nothing when it
// is not said or the op has no such one.
std::optional<SplitSignature> signature_of(const Graph& graph,
                                           const Node& node);

// True when a node has a part and gives a partial sum.
bool adds_parts(const Graph& graph, const Node& node);

// Returns "" or what is wrong with the numbers of a part and what is expected.
std::string why_no_part(const NodePart& part);

// "1 of [256,10] origin 640 slices 2 to 4 of 8 batch 256": the signature, then
// what is known. docs/graph-format.md.
void append_part(std::string& out, const NodePart& part);
// Behind the word "part". Throws errors::InvalidArgument with line and column.
NodePart parse_part(TextLine& line);

}  // namespace berth

#endif  // BERTH_GRAPH_NODE_PART_H_
