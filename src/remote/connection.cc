#include "remote/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/immortal.h"
#include "berth/device/build_id.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "place/cost_store.h"
#include "remote/mailbox.h"
#include "remote/task_parts.h"

namespace berth::remote {

namespace {

struct Connections {
  std::mutex mutex;
  std::shared_ptr<cluster::Member> member;
  struct Known {
    std::unique_ptr<RemoteTask> line;
    std::vector<RemoteDevice*> devices;
  };
  std::map<cluster::TaskId, Known> tasks;
};

Connections& connections() {
  static auto& c = immortal<Connections>();
  return c;
}

std::vector<DeviceReport> ask_for_devices(cluster::Member& member,
                                          const cluster::TaskId& task) {
  cluster::Message hello;
  hello.text = "hello";
  hello.tensors.push_back(tensor_of(Writer().text(BERTH_BUILD_ID).bytes()));
  const cluster::Message answer =
      member.call(task, kDevices, std::move(hello)).get();
  if (answer.tensors.empty()) {
    throw errors::Internal(task.str() + " did not say which devices it has");
  }
  Reader r(bytes_of(answer.tensors[0]));
  std::vector<DeviceReport> all(r.count());
  for (DeviceReport& d : all) {
    d.type = std::string(r.text());
    d.id = static_cast<int>(r.number());
    d.description = std::string(r.text());
    d.limit_bytes = r.number();
    d.simulated = r.number() != 0;
    for (double* rate :
         {&d.flops_per_us, &d.bytes_per_us, &d.cached_bytes_per_us,
          &d.cache_bytes, &d.launch_us}) {
      *rate = r.real();
    }
    d.measured = r.number() != 0;
    d.kernels.resize(r.count());
    for (auto& [op, dtypes] : d.kernels) {
      op = std::string(r.text());
      dtypes = static_cast<DTypeSet>(r.number());
    }
  }
  return all;
}

// Costs for the planner: rates reported by the task, the link as it is now.
void keep_costs(cluster::Member& member, const cluster::TaskId& task,
                const std::vector<RemoteDevice*>& devices) {
  CostStore& store = CostStore::get();
  for (const RemoteDevice* d : devices) {
    const DeviceReport& said = d->report();
    if (!(said.flops_per_us > 0 && said.bytes_per_us > 0 &&
          said.cached_bytes_per_us > 0 && said.launch_us >= 0)) {
      continue;
    }
    DeviceClass c;
    c.name = d->str();
    c.type = said.type;
    c.flops_per_us = said.flops_per_us;
    c.bytes_per_us = said.bytes_per_us;
    c.cached_bytes_per_us = said.cached_bytes_per_us;
    c.cache_bytes = said.cache_bytes;
    c.launch_us = said.launch_us;
    c.origin = said.measured ? CostOrigin::kMeasured : CostOrigin::kEstimated;
    store.add_class(c);
  }
  if (devices.empty()) return;
  const auto there_and_back_us = [&](size_t bytes) {
    double best = -1;
    for (int k = 0; k < 3; ++k) {
      cluster::Message ping;
      ping.text = "ping";
      ping.tensors.push_back(tensor_of(std::string(bytes, '\0')));
      const double begin = host_clock_us();
      member.call(task, kDevices, std::move(ping)).get();
      const double us = host_clock_us() - begin;
      if (best < 0 || us < best) best = us;
    }
    return best;
  };
  constexpr size_t kLarge = 1 << 20;
  LinkCost link;
  link.latency_us = there_and_back_us(8) / 2;
  const double us = there_and_back_us(kLarge) / 2 - link.latency_us;
  link.bytes_per_us = static_cast<double>(kLarge) / std::max(us, 1.0);
  link.origin = CostOrigin::kMeasured;
  const Device& here = DeviceManager::get().host();
  store.add_link(task_link_key(here, *devices[0]), link);
  store.add_link(task_link_key(*devices[0], here), link);
}

bool same_devices(const std::vector<RemoteDevice*>& known,
                  const std::vector<DeviceReport>& said) {
  if (known.size() != said.size()) return false;
  for (size_t i = 0; i < said.size(); ++i) {
    const DeviceReport& before = known[i]->report();
    if (before.type != said[i].type || before.id != said[i].id ||
        before.kernels != said[i].kernels) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::mutex& split_runs() {
  static auto& m = immortal<std::mutex>();
  return m;
}

void connect(std::shared_ptr<cluster::Member> member,
             std::vector<cluster::TaskId> tasks, Site site) {
  DeviceManager& manager =
      DeviceManager::get("config::connect_to_cluster()", site);
  if (tasks.empty()) {
    for (const cluster::TaskId& t : member->tasks()) {
      if (t != member->task() && t.job != "evaluator") tasks.push_back(t);
    }
  }
  Mailbox::of(member);
  Connections& all = connections();
  std::lock_guard lock(all.mutex);
  all.member = member;
  for (const cluster::TaskId& task : tasks) {
    const std::vector<DeviceReport> said = ask_for_devices(*member, task);
    Connections::Known& known = all.tasks[task];
    if (known.line && !known.devices.empty()) {
      if (!same_devices(known.devices, said)) {
        throw errors::FailedPrecondition(fmt::format(
            "{} came back with other devices; expected those that it had: "
            "start this program anew",
            task.str()));
      }
      known.line->connect(member);
      for (RemoteDevice* d : known.devices) d->map_again();
      continue;
    }
    known.line = std::make_unique<RemoteTask>(task);
    known.line->connect(member);
    std::vector<std::unique_ptr<Device>> devices;
    for (size_t i = 0; i < said.size(); ++i) {
      auto device = std::make_unique<RemoteDevice>(*known.line, i, said[i]);
      known.devices.push_back(device.get());
      devices.push_back(std::move(device));
    }
    manager.add_remote(std::move(devices));
    keep_costs(*member, task, known.devices);
  }
  set_task_splitter(&split_over_tasks);
}

void disconnect() {
  Connections& all = connections();
  std::lock_guard lock(all.mutex);
  all.member = nullptr;
  for (auto& [task, known] : all.tasks) {
    known.line->lose("this process has disconnected");
  }
}

RemoteTask* find_task(const cluster::TaskId& task) {
  Connections& all = connections();
  std::lock_guard lock(all.mutex);
  const auto it = all.tasks.find(task);
  return it == all.tasks.end() ? nullptr : it->second.line.get();
}

std::shared_ptr<cluster::Member> connected_member() {
  Connections& all = connections();
  std::lock_guard lock(all.mutex);
  return all.member;
}

}  // namespace berth::remote
