#include "remote/part_link.h"

#include <fmt/format.h>

#include "device/device_manager.h"
#include "remote/message_codec.h"

namespace berth::remote {

PartLink::PartLink(std::shared_ptr<cluster::Member> member, std::string owner,
                   std::vector<cluster::TaskId> tasks)
    : member_(std::move(member)),
      mailbox_(Mailbox::of(member_)),
      owner_(std::move(owner)),
      tasks_(std::move(tasks)) {
  for (const cluster::TaskId& t : tasks_) names_.push_back(t.str());
}

void PartLink::move_to(std::shared_ptr<cluster::Member> member,
                       std::string owner) {
  member_ = std::move(member);
  mailbox_ = Mailbox::of(member_);
  owner_ = std::move(owner);
}

void PartLink::begin(uint64_t run) { run_ = fmt::format("{}{}/", owner_, run); }

void PartLink::fail(errors::Code code, const std::string& why) {
  mailbox_->fail_run(run_, code, why, tasks_);
}

const cluster::TaskId& PartLink::task_of(const std::string& name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return tasks_[i];
  }
  throw errors::InvalidArgument(
      fmt::format("\"{}\" has no part of this step", name));
}

void PartLink::send(int64_t edge, const std::string& to, const View& value) {
  Tensor t =
      make_tensor(DeviceManager::get().host(), value.dtype, *value.shape);
  const size_t bytes = t.impl()->size_bytes();
  if (bytes > 0) std::memcpy(t.impl()->data(), value.data, bytes);
  mailbox_->send(task_of(to), fmt::format("{}{}", run_, edge), std::move(t));
}

void PartLink::receive(int64_t edge, const std::string& from,
                       const View& value) {
  const Tensor t = mailbox_->receive(fmt::format("{}{}", run_, edge), from,
                                     fmt::format("value {}", edge));
  if (t.dtype() != value.dtype || !(t.shape() == *value.shape)) {
    throw errors::Internal(
        fmt::format("{} sent {}; expected {} {}", from, t.spec().str(),
                    berth::name_of(value.dtype), value.shape->str()));
  }
  const size_t bytes = t.impl()->size_bytes();
  if (bytes > 0) std::memcpy(value.data, t.impl()->data(), bytes);
}

}  // namespace berth::remote
