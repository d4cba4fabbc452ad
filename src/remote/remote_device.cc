#include "remote/remote_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/immortal.h"
#include "device/device_manager.h"
#include "graph/graph.h"
#include "remote/op_text.h"

namespace berth::remote {

std::mutex& posting() {
  static auto& m = immortal<std::mutex>();
  return m;
}

std::string owner_name(const cluster::Member& member) {
  static const uint64_t process =
      static_cast<uint64_t>(
          std::chrono::system_clock::now().time_since_epoch().count()) ^
      static_cast<uint64_t>(getpid()) << 48;
  return fmt::format("{}/{:x}/", member.task().str(), process);
}

namespace {

// Devices of other tasks copy to each other directly.
constexpr int kPeers = 1 << 20;

Writer command(Command c) {
  Writer w;
  w.number(static_cast<uint64_t>(c));
  return w;
}

DeviceName name_of(const RemoteTask& task, const DeviceReport& report) {
  return {task.task().job, 0, task.task().index, report.type, report.id};
}

uint64_t next_kernel() {
  static std::atomic<uint64_t> n{0};
  return ++n;
}

uint64_t next_transfer() {
  static std::atomic<uint64_t> n{0};
  return ++n;
}

// A kernel that the task has bound. Bound again after reconnecting.
class RemoteKernel final : public Prepared {
 public:
  RemoteKernel(RemoteTask& task, const Writer& rest, std::vector<Tensor> blobs)
      : task_(task), rest_(rest), blobs_(std::move(blobs)) {}
  ~RemoteKernel() override {
    if (bound_ != task_.session()) return;
    try {
      task_.post(command(Command::kUnbind).number(id_.load()));
    } catch (const std::exception&) {
      // The session ends with all kernels bound in it.
    }
  }

  bool bind(const char* op) const {
    const uint64_t session = task_.session();
    id_ = next_kernel();
    const Tensor answer =
        task_.ask(command(Command::kBind).number(id_.load()).raw(rest_.bytes()),
                  blobs_, op);
    Reader r(bytes_of(answer));
    if (r.number() == 0) return false;
    scratch_ = static_cast<size_t>(r.number());
    bound_ = session;
    return true;
  }

  size_t scratch_bytes() const override { return scratch_; }
  void run(const KernelCall& call) const override {
    if (bound_ != task_.session()) {
      std::lock_guard lock(again_);
      if (bound_ != task_.session() && !bind(call.op->name().c_str())) {
        throw errors::Unimplemented(fmt::format(
            "{} lost its kernel with the former connection", call.op->name()));
      }
    }
    Writer w = command(Command::kRun);
    w.number(id_.load())
        .address(call.context->scratch)
        .address(call.context->step_counter)
        .number(call.context->slice_origin)
        .number(call.num_in + call.num_out);
    for (int i = 0; i < call.num_in; ++i) w.address(call.in[i].data);
    for (int i = 0; i < call.num_out; ++i) w.address(call.out[i].data);
    task_.post(w);
  }

 private:
  RemoteTask& task_;
  const Writer rest_;
  const std::vector<Tensor> blobs_;
  // What binding again sets; guarded by again_ or read at once.
  mutable std::mutex again_;
  mutable std::atomic<uint64_t> id_{0}, bound_{0};
  mutable size_t scratch_ = 0;
};

}  // namespace

void RemoteStream::wait(Event event) {
  if (event.stream == nullptr) return;
  if (auto* other = dynamic_cast<RemoteStream*>(event.stream)) {
    return other->task().check_session(event.sequence);
  }
  berth::synchronize(event);
}

void RemoteStream::wait_for_reuse(Event event) {
  if (event.stream == nullptr || dynamic_cast<RemoteStream*>(event.stream)) {
    return;
  }
  finish(event);
}

// Addresses that must not be touched here; the task has memory for each range.
class RemoteDevice::Memory final : public MemorySource {
 public:
  explicit Memory(RemoteDevice& device) : device_(device) {}
  std::byte* reserve(size_t bytes) override {
    void* p = mmap(nullptr, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    {
      std::lock_guard lock(device_.segments_mutex_);
      device_.segments_[static_cast<std::byte*>(p)] = bytes;
    }
    device_.task_.post(command(Command::kMap)
                           .number(uint64_t{device_.index_})
                           .address(p)
                           .number(uint64_t{bytes}));
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* data, size_t bytes) override {
    {
      std::lock_guard lock(device_.segments_mutex_);
      device_.segments_.erase(data);
    }
    device_.task_.post(command(Command::kUnmap).address(data));
    munmap(data, bytes);
  }
  bool host_addressable() const override { return false; }

 private:
  RemoteDevice& device_;
};

const KernelTable* RemoteDevice::make_kernels(RemoteDevice** owner,
                                              const DeviceReport& report) {
  auto table = std::make_unique<KernelTable>();
  for (const auto& [op, dtypes] : report.kernels) {
    if (!OpRegistry::get().find(op)) continue;
    table->prepared(
        op, dtypes,
        [owner](const PrepareArgs& args) { return (*owner)->bind(args); },
        "remote");
  }
  return table.release();
}

RemoteDevice::RemoteDevice(RemoteTask& task, size_t index,
                           const DeviceReport& report)
    : RemoteDevice(task, index, report,
                   std::make_unique<RemoteDevice*>(nullptr).release()) {}

RemoteDevice::RemoteDevice(RemoteTask& task, size_t index,
                           const DeviceReport& report, RemoteDevice** owner)
    : Device(name_of(task, report), report.description,
             make_kernels(owner, report), {.of_host = false, .peers = kPeers}),
      task_(task),
      index_(index),
      report_(report),
      compute_(this, task),
      copy_(this, task) {
  *owner = this;
  allocator_ = std::make_unique<Allocator>(
      this, std::make_unique<Memory>(*this), report.limit_bytes);
}

void RemoteDevice::map_again() {
  std::lock_guard lock(segments_mutex_);
  for (const auto& [data, bytes] : segments_) {
    task_.post(command(Command::kMap)
                   .number(uint64_t{index_})
                   .address(data)
                   .number(uint64_t{bytes}));
  }
}

std::unique_ptr<Prepared> RemoteDevice::bind(const PrepareArgs& args) {
  Writer rest;
  rest.number(uint64_t{index_}).number(args.unsplit ? 1 : 0);
  if (args.unsplit) rest.shape(*args.unsplit);
  OpText text = op_text(args);
  rest.text(text.text).number(uint64_t{text.blobs.size()});
  auto kernel = std::make_unique<RemoteKernel>(task_, rest, text.blobs);
  if (!kernel->bind(args.op->name().c_str())) return nullptr;
  return kernel;
}

void RemoteDevice::fill_async(Stream&, void* target, int value, size_t bytes) {
  task_.post(command(Command::kFill)
                 .number(uint64_t{index_})
                 .address(target)
                 .number(value)
                 .number(uint64_t{bytes}));
}

void RemoteDevice::write(void* target, const void* source, size_t bytes) {
  task_.post(command(Command::kWrite).number(uint64_t{index_}).address(target),
             tensor_of(source, bytes));
}

void RemoteDevice::copy_to_host(void* target, const void* source,
                                size_t bytes) {
  const Tensor t = task_.ask(command(Command::kRead)
                                 .number(uint64_t{index_})
                                 .address(source)
                                 .number(uint64_t{bytes}),
                             {}, "CopyToHost");
  const std::string_view got = bytes_of(t);
  if (got.size() != bytes) {
    throw errors::Internal(fmt::format("{} sent {} bytes; expected {}",
                                       task_.name(), got.size(), bytes));
  }
  std::memcpy(target, got.data(), bytes);
}

void RemoteDevice::copy_from_host(void* target, const void* source,
                                  size_t bytes) {
  if (bytes > 0) write(target, source, bytes);
}

void RemoteDevice::transfer_async(Stream&, const Copy& copy) {
  const bool here = copy.to == &memory();
  if (here && copy.from->host_addressable) {
    return write(copy.target, copy.source, copy.bytes);
  }
  if (copy.to->host_addressable) {
    return copy_to_host(copy.target, copy.source, copy.bytes);
  }
  auto& from = static_cast<RemoteDevice&>(*copy.from->device);
  auto& to = static_cast<RemoteDevice&>(*copy.to->device);
  if (&from.task_ == &to.task_) {
    task_.post(command(Command::kCopy)
                   .number(uint64_t{to.index_})
                   .address(copy.target)
                   .number(uint64_t{from.index_})
                   .address(copy.source)
                   .number(uint64_t{copy.bytes}));
    return;
  }
  const std::string key = fmt::format(
      "{}copy {}/0", owner_name(*from.task_.member()), next_transfer());
  std::lock_guard lock(posting());
  from.task_.post(command(Command::kSend)
                      .text(to.task_.task().job)
                      .number(to.task_.task().index)
                      .text(key)
                      .number(uint64_t{from.index_})
                      .address(copy.source)
                      .number(uint64_t{copy.bytes}));
  from.task_.flush();
  to.task_.post(command(Command::kReceive)
                    .text(key)
                    .number(uint64_t{to.index_})
                    .address(copy.target)
                    .number(uint64_t{copy.bytes}));
}

}  // namespace berth::remote
