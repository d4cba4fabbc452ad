// Reading and making constants: what fold and algebra ask of a graph. One
// thread.

#ifndef BERTH_PASSES_CONSTANTS_H_
#define BERTH_PASSES_CONSTANTS_H_

#include <optional>

#include "graph/graph.h"

namespace berth {

// The value of a Const node; null for other nodes.
const Tensor* constant_of(const Graph& graph, ValueRef v);

// True of an op whose one result follows from the values that it reads.
bool is_pure(const Node& node);

// Computes an op on the host, outside traces and tapes; nothing when it fails:
// then the error belongs to the run.
std::optional<Tensor> evaluate(const OpDef& op, const AttrsRef& attrs,
                               const Tensors& in);

// True when the bits of every element of `v` are those of `value` in its
// dtype (so 0.0 is not -0.0); Const, Fill, ZerosLike and OnesLike are seen.
bool all_elements_are(const Graph& graph, ValueRef v, double value);

// False for a node that must reach placement as it is: soft placement is off
// and the device it asks for cannot run its op. Rewriting it would hide that.
bool may_rewrite(const Graph& graph, const Node& node);

// Turns the node into a Const, which is of no part; its name, request and
// sources stay.
void become_constant(Node& node, const Tensor& value);

// Turns the node into another op over `inputs`; false (and unchanged) when
// the op's shape rule refuses or gives another dtype or shape. Its part stays
// one of the same slices; a sum over parts is refused.
bool become(const Graph& graph, Node& node, const OpDef& op, AttrsRef attrs,
            std::vector<ValueRef> inputs);

}  // namespace berth

#endif  // BERTH_PASSES_CONSTANTS_H_
