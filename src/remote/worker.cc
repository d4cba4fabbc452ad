#include "remote/worker.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "berth/device/build_id.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/machine_memory.h"
#include "exec/measure_costs.h"
#include "op/kernel.h"
#include "remote/session.h"

namespace berth::remote {

class Worker::Impl {
 public:
  Impl(std::shared_ptr<cluster::Member> member, const WorkerOptions& options)
      : member_(std::move(member)) {
    DeviceManager& m = DeviceManager::get();
    if (options.devices.empty()) {
      for (Device* d : m.devices()) {
        if (d->name().job == "localhost") devices_.push_back(d);
      }
    }
    for (const std::string& name : options.devices) {
      devices_.push_back(&m.lookup(DeviceName::parse(name)));
    }
  }

  cluster::Message answer(const cluster::TaskId& from,
                          cluster::Message message) {
    if (message.tensors.empty()) {
      throw errors::InvalidArgument("a message without commands");
    }
    const Tensor commands = message.tensors[0];
    const std::string_view bytes = bytes_of(commands);
    if (message.text == "ping") return message;
    if (message.text == "hello") return hello(from, Reader(bytes));
    std::shared_ptr<Session> session;
    {
      std::lock_guard lock(mutex_);
      session = sessions_[from];
    }
    if (!session) {
      throw errors::FailedPrecondition(
          fmt::format("{} has not connected to the devices of {}", from.str(),
                      member_->task().str()));
    }
    return session->run(bytes, std::move(message.tensors));
  }

 private:
  cluster::Message hello(const cluster::TaskId& from, Reader r) {
    const std::string build(r.text());
    if (build != BERTH_BUILD_ID) {
      throw errors::FailedPrecondition(fmt::format(
          "{} runs build {} of Berth and {} build {}; expected the same on all "
          "tasks",
          from.str(), build, member_->task().str(), BERTH_BUILD_ID));
    }
    {
      // Free the old session before the new one allocates.
      std::lock_guard lock(mutex_);
      sessions_.erase(from);
      sessions_[from] = std::make_shared<Session>(member_, from, devices_);
    }
    Writer w;
    w.number(uint64_t{devices_.size()});
    std::map<std::string, int> next;
    const Machine machine = this_machine();
    for (Device* d : devices_) {
      w.text(d->type()).number(next[d->type()]++).text(d->description());
      const MemoryInfo memory = d->allocator().info();
      w.number(has_default_limit(d->allocator(), memory.limit_bytes)
                   ? uint64_t{0}
                   : uint64_t{memory.limit_bytes});
      w.number(d->simulated() ? 1 : 0);
      add_rates(machine.class_of(machine.find(d->str())), w);
      add_kernels(d->kernels(), w);
    }
    cluster::Message answer;
    answer.tensors.push_back(tensor_of(w.bytes()));
    return answer;
  }

  static void add_rates(const DeviceClass& c, Writer& w) {
    w.real(c.flops_per_us).real(c.bytes_per_us).real(c.cached_bytes_per_us);
    w.real(c.cache_bytes).real(c.launch_us);
    w.number(c.origin == CostOrigin::kEstimated ? 0 : 1);
  }

  static void add_kernels(const KernelTable& table, Writer& w) {
    std::vector<std::pair<std::string, DTypeSet>> all;
    for (const OpDef* op : OpRegistry::get().all()) {
      DTypeSet dtypes = 0;
      for (int d = 1; d < kNumDTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        if (dtype != string_ && table.supports(*op, dtype)) {
          dtypes |= dtype_bit(dtype);
        }
      }
      if (dtypes) all.emplace_back(op->name(), dtypes);
    }
    w.number(uint64_t{all.size()});
    for (const auto& [op, dtypes] : all) w.text(op).number(uint64_t{dtypes});
  }

  const std::shared_ptr<cluster::Member> member_;
  std::vector<Device*> devices_;
  std::mutex mutex_;
  std::map<cluster::TaskId, std::shared_ptr<Session>> sessions_;
};

Worker::Worker(std::shared_ptr<cluster::Member> member, WorkerOptions options)
    : impl_(std::make_shared<Impl>(member, options)) {
  Mailbox::of(member);
  const std::weak_ptr<Impl> to = impl_;
  const std::string name = member->task().str();
  member->serve(kDevices, [to, name](const cluster::TaskId& from,
                                     cluster::Message message) {
    const auto impl = to.lock();
    if (!impl) throw errors::Unavailable(name + " no longer serves devices");
    return impl->answer(from, std::move(message));
  });
}

Worker::~Worker() = default;

}  // namespace berth::remote
