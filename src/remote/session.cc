#include "remote/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes_text.h"
#include "base/thread_pool.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "eager/kernel_cache.h"
#include "eager/parts.h"
#include "graph/blob_table.h"
#include "remote/op_text.h"
#include "remote/session_part.h"

namespace berth::remote {

namespace {

constexpr size_t kMostSegmentBytes = size_t{1} << 44;

// Commands that neither read nor write values run even after a failure.
bool keeps_house(Command c) {
  return c == Command::kMap || c == Command::kUnmap || c == Command::kBind ||
         c == Command::kUnbind || c == Command::kCompile ||
         c == Command::kDropPart;
}

// A task that takes part. Throws errors::InvalidArgument for others.
cluster::TaskId read_task(Reader& r, const cluster::Member& member) {
  cluster::TaskId task;
  task.job = std::string(r.text());
  task.index = static_cast<int>(r.number());
  const auto& all = member.tasks();
  if (std::find(all.begin(), all.end(), task) == all.end()) {
    throw errors::InvalidArgument(task.str() + " takes no part here");
  }
  return task;
}

}  // namespace

void on_device(Device& device, const std::function<void(Stream&)>& fn) {
  Stream& stream = device.compute_stream();
  struct Call {
    const std::function<void(Stream&)>& fn;
    std::exception_ptr error;
  } call{fn, nullptr};
  Work work;
  work.what = "RemoteCall";
  work.context = &call;
  work.run = [](void* context, Stream& stream) {
    auto& call = *static_cast<Call*>(context);
    try {
      call.fn(stream);
    } catch (...) {
      call.error = std::current_exception();
    }
  };
  stream.launch(work);
  stream.synchronize(stream.record());
  if (call.error) std::rethrow_exception(call.error);
}

void copy_in(Device& device, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return;
  if (device.memory().host_addressable) {
    std::memcpy(target, source, bytes);
  } else {
    device.copy_from_host(target, source, bytes);
  }
}

void copy_out(Device& device, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return;
  if (device.memory().host_addressable) {
    std::memcpy(target, source, bytes);
  } else {
    synchronize(device.compute_stream().record());
    device.copy_to_host(target, source, bytes);
  }
}

Session::Session(std::shared_ptr<cluster::Member> member,
                 cluster::TaskId client, std::vector<Device*> devices)
    : member_(std::move(member)),
      client_(std::move(client)),
      devices_(std::move(devices)),
      mailbox_(Mailbox::of(member_)) {}

Session::~Session() = default;

cluster::Message Session::run(std::string_view commands,
                              std::vector<Tensor> carried) {
  carried_ = std::move(carried);
  next_carried_ = 1;  // after the commands
  answers_.clear();
  uint64_t at = 0, failed_at = 0;
  std::vector<uint64_t> answered;  // the command of each answer
  bool fails = false;
  // Runs `fn`; if it throws, the following commands are skipped.
  const auto guarded = [&](auto&& fn) {
    errors::Code code = errors::Code::kInternal;
    std::string why;
    try {
      return fn();
    } catch (const errors::Error& e) {
      code = e.code();
      why = e.what();
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (failed_) return;
    // The session skips what follows; other users of the devices can continue.
    for (Device* d : devices_) d->reset_error();
    fails = failed_ = true;
    code_ = code;
    why_ = std::move(why);
  };
  guarded([&] {
    Reader all(commands);
    while (!all.done()) {
      const size_t next = next_carried_ + all.below(carried_.size());
      Reader one(all.text());
      const uint64_t command = Reader(one).number();
      if (command == static_cast<uint64_t>(Command::kReset)) {
        failed_ = false;
      } else if (failed_ && !keeps_house(static_cast<Command>(command))) {
        guarded([&] { skip(one); });
      } else {
        guarded([&] { step(one); });
      }
      next_carried_ = next;
      answered.resize(answers_.size(), at);
      failed_at = fails ? failed_at : at + 1;
      ++at;
    }
  });
  Writer status;
  status.number(uint64_t{answered.size()});
  for (const uint64_t a : answered) status.number(a);
  status.number(fails ? 1 : 0);
  if (fails) {
    status.number(failed_at).number(static_cast<uint64_t>(code_)).text(why_);
  }
  cluster::Message answer;
  answer.tensors = std::move(answers_);
  answer.tensors.insert(answer.tensors.begin(), tensor_of(status.bytes()));
  carried_.clear();
  return answer;
}

Tensor Session::take_carried() {
  if (next_carried_ >= carried_.size()) {
    throw errors::InvalidArgument("a command lacks the tensor it carries");
  }
  return carried_[next_carried_++];
}

void Session::step(Reader& r) {
  switch (static_cast<Command>(r.number())) {
    case Command::kMap:
      return map(r);
    case Command::kUnmap:
      return unmap(r);
    case Command::kWrite:
      return write(r);
    case Command::kRead:
      return read(r);
    case Command::kCopy:
      return copy(r);
    case Command::kFill:
      return fill(r);
    case Command::kBind:
      return bind(r);
    case Command::kUnbind:
      kernels_.erase(r.number());
      return;
    case Command::kRun:
      return run_kernel(r);
    case Command::kSend:
      return send(r);
    case Command::kReceive:
      return receive(r);
    case Command::kCompile:
      return compile(r);
    case Command::kRunPart:
      return run_part(r);
    case Command::kDropPart:
      parts_.erase(r.number());
      return;
    case Command::kHello:
    case Command::kReset:
      break;
  }
  throw errors::InvalidArgument("an unknown command of another task");
}

void Session::skip(Reader& r) {
  const auto command = static_cast<Command>(r.number());
  if (command == Command::kRunPart) {
    const auto found = parts_.find(r.number());
    if (found != parts_.end()) found->second->skip(*this, r, code_, why_);
  } else if (command == Command::kSend) {
    const cluster::TaskId to = read_task(r, *member_);
    const std::string key(r.text());
    mailbox_->fail_run(run_of(key), code_,
                       fmt::format("{}: {}", member_->task().str(), why_),
                       {to});
  }
}

std::byte* Session::at(uint64_t address, size_t bytes, Device* device) {
  if (bytes == 0) return nullptr;
  auto it = segments_.upper_bound(address);
  if (it != segments_.begin()) {
    --it;
    const uint64_t offset = address - it->first;
    const Segment& s = it->second;
    if (offset <= s.bytes && bytes <= s.bytes - offset &&
        (device == nullptr || device == s.block->device ||
         same_memory(*device, *s.block->device))) {
      return s.block->data + offset;
    }
  }
  throw errors::InvalidArgument(
      fmt::format("{} bytes at {:#x} are not memory that {} has here", bytes,
                  address, client_.str()));
}

void Session::map(Reader& r) {
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const auto bytes = static_cast<size_t>(r.number());
  if (bytes > kMostSegmentBytes) {
    throw errors::ResourceExhausted(fmt::format(
        "{} of {} asked for at once", bytes_text(static_cast<int64_t>(bytes)),
        device.name().short_str()));
  }
  auto& segment = segments_[address];
  segment.block = BlockRef::adopt(device.allocator().allocate(bytes));
  segment.bytes = bytes;
}

void Session::unmap(Reader& r) { segments_.erase(r.number()); }

void Session::write(Reader& r) {
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const Tensor value = take_carried();
  const std::string_view bytes = bytes_of(value);
  copy_in(device, at(address, bytes.size(), &device), bytes.data(),
          bytes.size());
}

void Session::read(Reader& r) {
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const auto bytes = static_cast<size_t>(r.number());
  const std::byte* from = at(address, bytes, &device);
  Tensor t = make_tensor(DeviceManager::get().host(), uint8,
                         {static_cast<int64_t>(bytes)});
  copy_out(device, t.impl()->data(), from, bytes);
  answers_.push_back(std::move(t));
}

void Session::copy(Reader& r) {
  Device& to = *devices_[r.below(devices_.size())];
  const uint64_t target = r.number();
  Device& from = *devices_[r.below(devices_.size())];
  const uint64_t source = r.number();
  const auto bytes = static_cast<size_t>(r.number());
  std::byte* out = at(target, bytes, &to);
  const std::byte* in = at(source, bytes, &from);
  if (bytes == 0) return;
  if (to.memory().host_addressable && from.memory().host_addressable) {
    std::memmove(out, in, bytes);
    return;
  }
  std::vector<std::byte> staged(bytes);
  copy_out(from, staged.data(), in, bytes);
  copy_in(to, out, staged.data(), bytes);
}

void Session::fill(Reader& r) {
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const int value = static_cast<int>(r.number());
  const auto bytes = static_cast<size_t>(r.number());
  std::byte* to = at(address, bytes, &device);
  if (bytes == 0) return;
  on_device(device, [&](Stream& stream) {
    device.fill_async(stream, to, value, bytes);
  });
}

void Session::bind(Reader& r) {
  const uint64_t id = r.number();
  auto k = std::make_shared<SessionKernel>();
  k->device = devices_[r.below(devices_.size())];
  k->has_unsplit = r.number() != 0;
  if (k->has_unsplit) k->unsplit = r.shape();
  const std::string text(r.text());
  for (size_t n = r.below(carried_.size()); n > 0; --n) {
    keep_blob(take_carried());
  }
  k->graph = parse_op(text);
  const Node& node = k->node();
  for (const ValueRef v : node.inputs) k->in.push_back(k->graph.spec(v).view());
  k->out = node.outputs;
  k->kernel = bind_kernel(k->device->kernels(),
                          {.op = node.op,
                           .attrs = node.attrs.get(),
                           .in = k->in,
                           .out = k->out,
                           .slices = default_slices(*k->device),
                           .unsplit = k->has_unsplit ? &k->unsplit : nullptr});
  Writer answer;
  answer.number(k->kernel.def ? 1 : 0);
  const Prepared* state = k->kernel.state.get();
  answer.number(uint64_t{state ? state->scratch_bytes() : 0});
  answers_.push_back(tensor_of(answer.bytes()));
  if (k->kernel.def) kernels_[id] = std::move(k);
}

void Session::run_kernel(Reader& r) {
  const auto found = kernels_.find(r.number());
  if (found == kernels_.end()) {
    throw errors::InvalidArgument("a kernel that is not bound here");
  }
  SessionKernel& k = *found->second;
  Device& device = *k.device;
  const Node& node = k.node();
  const uint64_t scratch = r.number(), counter = r.number();
  KernelContext context;
  context.slice_origin = r.signed_number();
  const size_t num_in = k.in.size(), num_out = k.out.size();
  if (r.count() != num_in + num_out) {
    throw errors::InvalidArgument("a kernel with other operands than bound");
  }
  std::vector<View> views;
  views.reserve(num_in + num_out);
  const auto add = [&](const Shape& shape, DType dtype) {
    const size_t bytes =
        static_cast<size_t>(shape.num_elements()) * size_of(dtype);
    views.push_back({at(r.number(), bytes, &device), &shape, dtype});
  };
  for (const SpecView& s : k.in) {
    add(*s.shape, s.dtype == resource ? s.variable : s.dtype);
  }
  for (const OutSpec& s : k.out) add(s.shape, s.dtype);
  if (k.kernel.state) {
    context.scratch = at(scratch, k.kernel.state->scratch_bytes(), &device);
  }
  if (counter != 0) {
    context.step_counter = reinterpret_cast<const uint64_t*>(
        at(counter, sizeof(uint64_t), &device));
  }
  if (k.has_unsplit) context.unsplit = &k.unsplit;
  context.pool = device.pool();
  context.slices = default_slices(device);
  context.stream = &device.compute_stream();
  const KernelCall call{node.op,
                        node.attrs.get(),
                        views.data(),
                        views.data() + num_in,
                        static_cast<int>(num_in),
                        static_cast<int>(num_out),
                        &context};
  if (!device.runs_inline()) {
    return on_device(device, [&](Stream&) { k.kernel.run(call); });
  }
  const InferContext c(*node.op, node.attrs.get(), k.in, k.out);
  if (k.kernel.def->parallel || !k.kernel.direct ||
      !run_in_parts(device, k.kernel.direct, call, c)) {
    k.kernel.run(call);
  }
}

void Session::send(Reader& r) {
  const cluster::TaskId to = read_task(r, *member_);
  const std::string key(r.text());
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const auto bytes = static_cast<size_t>(r.number());
  const std::byte* from = at(address, bytes, &device);
  Tensor t = make_tensor(DeviceManager::get().host(), uint8,
                         {static_cast<int64_t>(bytes)});
  copy_out(device, t.impl()->data(), from, bytes);
  mailbox_->send(to, key, std::move(t));
}

void Session::receive(Reader& r) {
  const std::string key(r.text());
  Device& device = *devices_[r.below(devices_.size())];
  const uint64_t address = r.number();
  const auto bytes = static_cast<size_t>(r.number());
  std::byte* to = at(address, bytes, &device);
  const Tensor t = mailbox_->receive(key, "another task", "a tensor");
  const std::string_view got = bytes_of(t);
  if (got.size() != bytes) {
    throw errors::Internal(
        fmt::format("{} bytes came; expected {}", got.size(), bytes));
  }
  copy_in(device, to, got.data(), bytes);
}

void Session::compile(Reader& r) {
  const uint64_t id = r.number();
  auto part =
      std::make_unique<SessionPart>(*this, r, [&] { return take_carried(); });
  answers_.push_back(tensor_of(part->figures()));
  parts_[id] = std::move(part);
}

void Session::run_part(Reader& r) {
  const auto found = parts_.find(r.number());
  if (found == parts_.end()) {
    throw errors::InvalidArgument("a part of a step that is not here");
  }
  found->second->run(*this, r);
}

}  // namespace berth::remote
