// SessionPart: this task's part of a step that another task drives: a graph
// text, verified and compiled once, run at each step. Internal to the module.

#ifndef BERTH_REMOTE_SESSION_PART_H_
#define BERTH_REMOTE_SESSION_PART_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/plan.h"
#include "remote/part_link.h"
#include "remote/session.h"

namespace berth::remote {

// FNV-1a: to verify that a text arrived unchanged.
uint64_t hash_of(std::string_view text);

class SessionPart {
 public:
  // Reads what PartSender wrote. Throws errors::InvalidArgument (a text that is
  // malformed or changed), and the errors of Plan::build().
  SessionPart(Session& session, Reader& r,
              const std::function<Tensor()>& carried);
  // Figures of the compilation, for reports: a Writer's bytes.
  const std::string& figures() const { return figures_; }
  // Runs it once: run, step, addresses of arguments and results. If it fails,
  // so do the other parts.
  void run(Session& session, Reader& r);
  // A run that is skipped because of an earlier failure counts as failed.
  void skip(Session& session, Reader& r, errors::Code code,
            const std::string& why);

 private:
  void make_local(Session& session, Graph& graph);
  Device& local_device(const Session& session, DeviceId name) const;
  const Tensor& variable_at(Session& session, uint64_t address, Node& node);
  void run_plan(Session& session, Reader& r);

  std::shared_ptr<PartLink> link_;
  int64_t link_number_ = 0;
  std::vector<uint64_t> addresses_;  // of variables, in order of their nodes
  size_t next_address_ = 0;
  std::map<uint64_t, Tensor> variables_;  // by address
  std::shared_ptr<std::atomic<uint64_t>> steps_;
  std::unique_ptr<Plan> plan_;
  std::string figures_;
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_SESSION_PART_H_
