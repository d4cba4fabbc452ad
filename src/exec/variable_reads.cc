#include "exec/variable_reads.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "graph/variable_range.h"

namespace berth {

namespace {

// Inserts `node` before position `at`, renumbering what follows.
void insert_before(Graph& graph, int32_t at, Node node) {
  auto shift = [at](int32_t& n) {
    if (n >= at) ++n;
  };
  for (Node& n : graph.nodes) {
    for (ValueRef& v : n.inputs) shift(v.node);
    for (int32_t& c : n.controls) shift(c);
    if (n.follows >= 0) shift(n.follows);
  }
  for (ValueRef& v : graph.outputs) shift(v.node);
  for (int32_t& a : graph.args) shift(a);
  graph.nodes.insert(graph.nodes.begin() + at, std::move(node));
}

void add_control(Node& node, int32_t before) {
  auto it =
      std::lower_bound(node.controls.begin(), node.controls.end(), before);
  if (it == node.controls.end() || *it != before) {
    node.controls.insert(it, before);
  }
}

// What a node writes of variables.
std::vector<VariableRange> written_ranges(const Graph& graph,
                                          const Node& node) {
  std::vector<VariableRange> ranges;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool may_write = node.op->kind() == OpKind::kControl ||
                           writes(node.op->input(static_cast<int>(i)).access);
    if (may_write && graph.spec(node.inputs[i]).dtype == resource) {
      ranges.push_back(variable_range(graph, node.inputs[i]));
    }
  }
  return ranges;
}

struct Write {
  int32_t node;
  VariableRange range;
};

// The next writers of what was read at `at`: several when each writes a range
// of it, none after one that writes all of it.
std::vector<int32_t> next_writers(const std::vector<Write>& writes,
                                  const VariableRange& read, int32_t at) {
  std::vector<int32_t> next;
  auto w = std::partition_point(writes.begin(), writes.end(),
                                [&](const Write& w) { return w.node <= at; });
  for (; w != writes.end(); ++w) {
    if (!w->range.overlaps(read)) continue;
    next.push_back(w->node);
    if (w->range.contains(read)) break;
  }
  return next;
}

// All readers of the bytes of a value, through aliases too.
struct Readers {
  std::vector<int32_t> nodes;
  bool escapes = false;
};

Readers readers_of(const Graph& graph,
                   const std::vector<std::vector<int32_t>>& users,
                   const std::vector<bool>& is_output, int32_t read) {
  Readers r;
  std::vector<int32_t> open{read};
  while (!open.empty()) {
    const int32_t n = open.back();
    open.pop_back();
    r.escapes |= is_output[n];
    for (int32_t user : users[n]) {
      const Node& u = graph[user];
      const bool reads_it =
          std::any_of(u.inputs.begin(), u.inputs.end(),
                      [&](const ValueRef& v) { return v.node == n; });
      if (!reads_it) continue;  // waits only
      if (u.op->kind() == OpKind::kAlias) {
        open.push_back(user);
      } else {
        r.nodes.push_back(user);
      }
    }
  }
  return r;
}

}  // namespace

void pin_reads(Graph& graph) {
  static const OpDef& copy = op_named("DeepCopy");
  // Reads that need a copy, last first so that positions stay valid.
  std::vector<int32_t> copies;
  {
    const auto users = graph.users();
    std::vector<bool> is_output(graph.nodes.size(), false);
    for (const ValueRef& v : graph.outputs) is_output[v.node] = true;
    std::unordered_map<int32_t, std::vector<Write>> writes;  // by handle
    for (int32_t i = 0; i < graph.size(); ++i) {
      for (const VariableRange& r : written_ranges(graph, graph[i])) {
        writes[r.handle].push_back({i, r});
      }
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (graph[i].op->kind() != OpKind::kReadVariable) continue;
      const Readers readers = readers_of(graph, users, is_output, i);
      const VariableRange read = variable_range(graph, graph[i].inputs[0]);
      const std::vector<int32_t> next =
          next_writers(writes[read.handle], read, i);
      bool needs_copy = readers.escapes;
      if (!next.empty()) {
        // A body may write the variable before it looks at its operand.
        const bool body = graph[next[0]].op->kind() == OpKind::kControl;
        for (int32_t reader : readers.nodes) {
          needs_copy |= reader > next[0] || (body && reader == next[0]);
        }
      }
      if (needs_copy) {
        copies.push_back(i);
        continue;
      }
      for (const int32_t writer : next) {
        for (int32_t reader : readers.nodes) {
          if (reader != writer) add_control(graph[writer], reader);
        }
      }
    }
  }
  for (auto it = copies.rbegin(); it != copies.rend(); ++it) {
    const int32_t read = *it, at = read + 1;
    Node node;
    node.op = &copy;
    node.name = unique_name(graph, graph[read].name + "/copy");
    node.outputs = graph[read].outputs;
    node.assigned = graph[read].assigned;
    node.sources = graph[read].sources;
    insert_before(graph, at, std::move(node));
    // Readers take the copy; ops that waited for the read wait for the copy.
    for (Node& n : graph.nodes) {
      for (ValueRef& v : n.inputs) {
        if (v.node == read) v.node = at;
      }
      if (std::find(n.controls.begin(), n.controls.end(), read) !=
          n.controls.end()) {
        add_control(n, at);
      }
    }
    for (ValueRef& v : graph.outputs) {
      if (v.node == read) v.node = at;
    }
    graph[at].inputs = {{read, 0}};
  }
}

namespace {

// True for an op that may refuse values: indices and labels, matrices, calls of
// the user's. Not for gradients, which get what was looked at before, and
// messages between tasks: writes that wait for all would keep gradients alive.
bool may_refuse(const Node& node) {
  constexpr std::string_view kMatrices[] = {"Cholesky", "MatrixInverse",
                                            "MatrixSolve", "Multinomial"};
  if (node.op->graph_only() || node.follows >= 0) return false;
  const std::string& name = node.op->name();
  if (std::find(std::begin(kMatrices), std::end(kMatrices), name) !=
      std::end(kMatrices)) {
    return true;
  }
  if (node.has_effect()) return !name.starts_with('_');
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ArgDef& input = node.op->input(static_cast<int>(i));
    if (input.free_dtype && input.types == kIndexTypes) return true;
  }
  return false;
}

}  // namespace

void write_after_checks(Graph& graph) {
  const size_t n = graph.nodes.size();
  std::vector<std::vector<int32_t>> before(n);
  std::vector<bool> is_write(n, false), after(n, false);  // after a write
  std::vector<int32_t> checks;
  VariableAccesses accesses;
  int32_t effect = -1, writes = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph[i];
    before[i] = node.controls;
    bool variables = false;
    for (const ValueRef& v : node.inputs) before[i].push_back(v.node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (graph.spec(node.inputs[k]).dtype != resource) continue;
      variables = true;
      const bool write =
          node.op->kind() == OpKind::kControl ||
          berth::writes(node.op->input(static_cast<int>(k)).access);
      is_write[i] = is_write[i] || write;
      accesses.add(variable_range(graph, node.inputs[k]), i, write, before[i]);
    }
    if (node.has_effect() && !variables) {
      if (effect >= 0) before[i].push_back(effect);
      effect = i;
    }
    for (const int32_t b : before[i]) {
      after[i] = after[i] || after[b] || is_write[b];
    }
    writes += is_write[i];
    if (after[i] || is_write[i] || !may_refuse(node)) continue;
    checks.push_back(i);
  }
  if (checks.empty() || writes == 0) return;
  // By node: whom of the checks it waits for anyway.
  std::vector<std::vector<bool>> passed(n);
  for (int32_t i = 0; i < graph.size(); ++i) {
    passed[i].resize(checks.size());
    for (const int32_t b : before[i]) {
      for (size_t c = 0; c < checks.size(); ++c) {
        if (passed[b][c] || b == checks[c]) passed[i][c] = true;
      }
    }
    for (size_t c = 0; is_write[i] && c < checks.size(); ++c) {
      if (!passed[i][c]) graph[i].controls.push_back(checks[c]);
    }
  }
  std::vector<int32_t> to(n);
  int32_t next = 0;
  for (const bool late : {false, true}) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const bool behind = i > checks.back() || after[i] || is_write[i];
      if (behind == late) to[i] = next++;
    }
  }
  graph.renumber(to);
}

}  // namespace berth
