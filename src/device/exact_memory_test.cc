#include "device/exact_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "base/fresh_process_testing.h"
#include "device/allocator.h"
#include "device/inline_stream.h"
#include "device/testing.h"

namespace berth {
namespace {

using fresh_process::check;

// Addresses that nobody touches; notes what is out, to the byte.
struct Log {
  std::map<std::byte*, size_t> out;
  int released = 0;
};

class NotedSource final : public MemorySource {
 public:
  explicit NotedSource(Log* log) : log_(log) {}
  std::byte* reserve(size_t bytes) override {
    std::byte* data = next_;
    next_ += (bytes / 4096 + 2) * 4096;
    log_->out[data] = bytes;
    return data;
  }
  void release(std::byte* data, size_t bytes) override {
    check(log_->out.at(data) == bytes, "released as it was reserved");
    log_->out.erase(data);
    ++log_->released;
  }
  bool host_addressable() const override { return false; }

 private:
  Log* log_;
  std::byte* next_ = reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
};

// A device with a memory of its own, whose stream the test plays.
class Card final : public Device {
 public:
  explicit Card(Log* log, size_t limit = 0)
      : Device({"localhost", 0, 0, "GPU", 60}, "a test", nullptr,
               {.of_host = false}),
        stream(this),
        allocator_(this, std::make_unique<NotedSource>(log), limit) {}

  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return stream; }
  Stream& copy_stream() override { return stream; }

  test::PlayedStream stream;

 private:
  Allocator allocator_;
};

void every_block_is_one_allocation() {
  setenv("BERTH_GPU_ALLOCATOR", "exact", 1);
  Log log;
  Card card(&log);
  Allocator& a = card.allocator();
  const BlockRef small = BlockRef::adopt(a.allocate(100));
  const BlockRef other = BlockRef::adopt(a.allocate(100));
  const BlockRef large = BlockRef::adopt(a.allocate(3000001));
  check(log.out.size() == 3, "three allocations");
  check(log.out.at(small->data) == 100, "of 100 bytes");
  check(log.out.at(large->data) == 3000001, "of 3000001 bytes");
  check(small->bytes == 100, "a block knows its bytes");
  check(a.info().current_bytes == 3000201, "which are counted");
  check(a.info().reserved_bytes == 3000201, "as reserved too");
}

void bytes_go_back_when_the_stream_is_done() {
  setenv("BERTH_GPU_ALLOCATOR", "exact", 1);
  Log log;
  Card card(&log);
  Allocator& a = card.allocator();
  BlockRef block = BlockRef::adopt(a.allocate(5000));
  card.stream.launch({});
  block = {};
  BlockRef::adopt(a.allocate(8)).detach();
  check(log.released == 0, "the stream may still use it");
  card.stream.reached = 1;
  a.empty_cache();
  check(log.released == 1, "it is over");
  check(card.stream.waited_for == 0, "and nobody waited");
}

void a_limit_waits_for_the_stream() {
  setenv("BERTH_GPU_ALLOCATOR", "exact", 1);
  Log log;
  Card card(&log, 6000);
  Allocator& a = card.allocator();
  BlockRef block = BlockRef::adopt(a.allocate(5000));
  card.stream.launch({});
  block = {};
  block = BlockRef::adopt(a.allocate(4000));
  check(log.released == 1, "the first was given back for it");
  fresh_process::refuses<errors::ResourceExhausted>(
      [&] { BlockRef::adopt(a.allocate(2001)); }, "3.9 KiB in use");
  BlockRef::adopt(a.allocate(2000));
}

void nothing_changes_for_the_host() {
  setenv("BERTH_GPU_ALLOCATOR", "exact", 1);
  test::TestDevice device;
  check(!has_exact_memory(device), "its memory is the process's");
  BlockRef::adopt(device.allocator().allocate(100));
  check(device.allocator().info().reserved_bytes > 100, "it caches");
}

void another_word() {
  setenv("BERTH_GPU_ALLOCATOR", "exactly", 1);
  fresh_process::refuses<errors::InvalidArgument>([] { exact_memory_asked(); },
                                                  "BERTH_GPU_ALLOCATOR");
}

TEST(ExactMemory, EveryBlockIsOneAllocationToTheByte) {
  IN_A_FRESH_PROCESS(every_block_is_one_allocation());
}
TEST(ExactMemory, BytesGoBackWhenTheStreamIsDoneWithThem) {
  IN_A_FRESH_PROCESS(bytes_go_back_when_the_stream_is_done());
}
TEST(ExactMemory, ALimitWaitsForTheStreamAndIsKept) {
  IN_A_FRESH_PROCESS(a_limit_waits_for_the_stream());
}
TEST(ExactMemory, NothingChangesForTheHost) {
  IN_A_FRESH_PROCESS(nothing_changes_for_the_host());
}
TEST(ExactMemory, AnotherWordIsRefused) { IN_A_FRESH_PROCESS(another_word()); }

}  // namespace
}  // namespace berth
