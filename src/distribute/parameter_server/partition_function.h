// Splits a traced function between a worker and parameter servers.
//
// A write of a variable runs on its server, along with all elementwise work on
// the server's own values that only the write needs (slots, decay, moving
// averages). The server also gathers rows. Scalars that depend on themselves
// only (counters, powers of Adam) are on every server, which steps its own
// copy. Everything else runs on the worker. One thread.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_PARTITION_FUNCTION_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_PARTITION_FUNCTION_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "distribute/parameter_server/step_program.h"
#include "graph/graph.h"

namespace berth::distribute {

// Variables that must share a server, in order of creation.
struct ServerGroup {
  std::vector<Tensor> handles;
  bool everywhere = false;
  std::string whole_because;  // why it cannot be sharded; "": it can
};

class ServerSplit {
 public:
  // Where a variable already is.
  enum class Known : uint8_t { kNowhere, kSomewhere, kEverywhere };

  // `graph`: as traced; it is optimised here. Throws errors::Unimplemented,
  // naming the op and its line, for a function that cannot be split.
  ServerSplit(Graph graph, const std::function<Known(const Tensor&)>& known);

  const std::vector<ServerGroup>& groups() const { return groups_; }

  // `placed`: for every variable of the groups; `servers`: their number.
  StepProgram program(
      const std::function<const ServerVariable&(const Tensor&)>& placed,
      int servers) const;

 private:
  friend class ProgramMaker;  // build_step.cc
  enum class Role : uint8_t { kSource, kRead, kEffect, kCompute };
  static constexpr int kWorker = -1;

  void find_roles();
  void find_counters(const std::function<Known(const Tensor&)>& known);
  void find_groups(const std::function<Known(const Tensor&)>& known);
  void find_server_nodes();
  void check_shards();
  void find_needed();
  bool find_levels();
  bool is_handle(ValueRef v) const;
  int variable_of(ValueRef v) const { return variable_of_node_[v.node]; }
  int group_of_effect(int32_t node) const;
  bool reads_rows(int32_t node) const;  // a gather that the server runs
  bool by_rows(int32_t node, std::string* why) const;
  bool on_server(int32_t node) const { return place_[node] != kWorker; }
  bool has_on_server(ValueRef v, int place) const;
  int ready(ValueRef v) const;
  // The first stage in which a node can run, and the node that decides it (-1:
  // none does).
  std::pair<int, int32_t> level_of(int32_t node) const;
  int32_t blocked_write() const;

  Graph g_;
  std::vector<Tensor> variables_;      // distinct, by number
  std::vector<int> variable_of_node_;  // of handle nodes; -1
  std::vector<int> group_of_variable_;
  std::vector<bool> counter_;  // variables: on every server
  std::vector<ServerGroup> groups_;
  std::vector<Role> roles_;
  std::vector<int> place_;                   // kWorker or a group
  std::vector<bool> derived_;                // from counters and constants only
  std::vector<std::vector<int32_t>> users_;  // of outputs
  std::vector<bool> is_output_;
  std::vector<bool> needed_;  // by the worker
  std::vector<bool> pulled_;  // reads whose value the worker needs
  std::vector<int> level_;
  std::vector<int32_t> cause_;  // the node that decides the level; -1
  int num_levels_ = 0, last_update_ = 0;
  int32_t last_update_node_ = -1;
  bool steps_counters_ = true;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_PARTITION_FUNCTION_H_
