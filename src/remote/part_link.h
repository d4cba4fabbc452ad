// PartLink: connects a part of a step with the parts of other tasks.
//
// One per compiled part; the kernels of _TaskSend and _TaskRecv look it up by
// its number. One run at a time.

#ifndef BERTH_REMOTE_PART_LINK_H_
#define BERTH_REMOTE_PART_LINK_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "op/send_recv.h"
#include "remote/mailbox.h"

namespace berth::remote {

class PartLink final : public Rendezvous {
 public:
  // `owner`: "TASK/SESSION/" of the task that drives the runs.
  PartLink(std::shared_ptr<cluster::Member> member, std::string owner,
           std::vector<cluster::TaskId> tasks);

  void move_to(std::shared_ptr<cluster::Member> member, std::string owner);
  void begin(uint64_t run);
  // Tells all tasks of the run that it failed here.
  void fail(errors::Code code, const std::string& why);
  std::optional<cluster::ClusterFailure> failed() const {
    return mailbox_->failed(run_);
  }

  void send(int64_t edge, const std::string& to, const View& value) override;
  void receive(int64_t edge, const std::string& from,
               const View& value) override;

 private:
  const cluster::TaskId& task_of(const std::string& name) const;

  std::shared_ptr<cluster::Member> member_;
  std::shared_ptr<Mailbox> mailbox_;
  std::string owner_;
  const std::vector<cluster::TaskId> tasks_;
  std::vector<std::string> names_;  // of the tasks
  std::string run_;                 // "OWNER/SESSION/RUN/"
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_PART_LINK_H_
