#include "conformance/gpu_stand_ins/host_card/host_card.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "berth/errors.h"
#include "conformance/gpu_stand_ins/host_card/host_code.h"

namespace berth::gpu {

namespace {

// One command at a time: kernels read their item from a global variable.
std::mutex g_command;

// Closes what a command opened.
class Opened {
 public:
  explicit Opened(HostMemory& memory) : memory_(memory) {}
  ~Opened() { memory_.close(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  HostMemory& memory_;
};

// A mark is the time at which it was made, and so passed.
class HostQueue final : public Queue {
 public:
  explicit HostQueue(HostCard& card) : card_(card) {}
  HostCard& card() { return card_; }
  void count() { ++appended_; }

  void copy(const Copy& copy) override {
    if (copy.bytes == 0) return;
    count();
    card_.copy(copy);
  }
  void fill(void* target, int value, size_t bytes) override {
    count();
    card_.fill(target, value, bytes);
  }
  Mark mark() override {
    return std::make_unique<double>(host_clock_us()).release();
  }
  void release(Mark mark) noexcept override {
    const std::unique_ptr<double> owned(static_cast<double*>(mark));
  }
  bool passed(Mark) override { return true; }
  void await(Mark) override {}
  void follow(Mark) override { count(); }
  double passed_us(Mark mark) override { return *static_cast<double*>(mark); }

 private:
  HostCard& card_;
};

class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(HostCode code) : code_(std::move(code)) {}
  void launch(Queue& queue, const Grid& grid, const KernelArg* args,
              int num_args) override {
    auto& q = static_cast<HostQueue&>(queue);
    q.count();
    q.card().run(code_, grid, args, num_args);
  }

 private:
  const HostCode code_;
};

class HostModule final : public Module {
 public:
  HostModule(std::string text, HostCheck check)
      : text_(std::move(text)), check_(check) {}
  std::unique_ptr<Kernel> kernel(const char* name) override {
    return std::make_unique<CompiledKernel>(host_code(text_, name, check_));
  }

 private:
  const std::string text_;
  const HostCheck check_;
};

void check_call(const HostCode& code, const Grid& grid, const KernelArg* args,
                int num_args) {
  const HostEntry& entry = *code.entry;
  if (static_cast<int>(grid.items) != entry.items) {
    throw errors::Internal(fmt::format(
        "GPU kernel {} was launched with {} items a group; expected {}",
        code.name, grid.items, entry.items));
  }
  if (num_args != entry.num_args) {
    throw errors::Internal(
        fmt::format("GPU kernel {} was given {} arguments; expected {}",
                    code.name, num_args, entry.num_args));
  }
  for (int i = 0; i < num_args; ++i) {
    if (args[i].bytes == entry.arg_bytes[i]) continue;
    throw errors::Internal(fmt::format(
        "GPU kernel {}, argument {}: {} bytes; expected {} (0: an address)",
        code.name, i, args[i].bytes, entry.arg_bytes[i]));
  }
}

}  // namespace

HostCard::HostCard(uint64_t seed, HostCheck check)
    : check_(check), items_(seed) {
  features_.name = "kernels on the processor, ";
  switch (check) {
    case HostCheck::kMemory:
      features_.name += "AddressSanitizer and UBSan";
      break;
    case HostCheck::kUndefined:
      features_.name += "UBSan";
      break;
    case HostCheck::kRaces:
      features_.name += "watched for races";
  }
  features_.memory_bytes = size_t{8} << 30;
  features_.local_bytes = 49152;
  features_.joins_programs = false;  // tests share a cache of single programs
}

std::unique_ptr<Queue> HostCard::make_queue() {
  return std::make_unique<HostQueue>(*this);
}

std::unique_ptr<Module> HostCard::compile(const std::string& text) {
  return std::make_unique<HostModule>(text, check_);
}

void HostCard::run(const HostCode& code, const Grid& grid,
                   const KernelArg* args, int num_args) {
  check_call(code, grid, args, num_args);
  std::vector<void*> pointers;
  std::lock_guard lock(g_command);
  const Opened opened(memory_);
  const bool watches = check_ == HostCheck::kRaces;
  if (watches) races_.begin(code);
  for (int i = 0; i < num_args; ++i) {
    pointers.push_back(const_cast<void*>(args[i].value));
    if (args[i].bytes > 0) continue;
    const void* address = *static_cast<void* const*>(args[i].value);
    if (address == nullptr) continue;
    const size_t bytes = memory_.open(address, args[i].extent);
    if (watches) races_.add(i, address, bytes);
  }
  items_.run(code, grid, pointers.data());
  if (!watches) return;
  if (const std::string race = races_.end(); !race.empty()) {
    throw errors::Internal(race);
  }
}

void HostCard::copy(const Copy& copy) {
  std::lock_guard lock(g_command);
  const Opened opened(memory_);
  if (!copy.to->host_addressable) memory_.open(copy.target, copy.bytes);
  if (!copy.from->host_addressable) memory_.open(copy.source, copy.bytes);
  std::memmove(copy.target, copy.source, copy.bytes);
}

void HostCard::fill(void* target, int value, size_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(g_command);
  const Opened opened(memory_);
  memory_.open(target, bytes);
  std::memset(target, value, bytes);
}

}  // namespace berth::gpu
