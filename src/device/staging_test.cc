// What a copy passes through when neither device reaches the other. Each test
// runs in a process of its own, since devices are configured once.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/testing.h"

namespace berth {
namespace {

using fresh_process::check;

constexpr size_t kBytes = 3 << 20;
constexpr int kValue = 0x5a;

// A memory that nobody else reaches, and a stream that the test plays. What it
// is asked to copy it would copy later.
class FarDevice final : public Device {
 public:
  explicit FarDevice(int id)
      : Device({"localhost", 0, 0, "FAR", id}, "a test", nullptr,
               {.of_host = false}),
        stream(this),
        allocator_(this, host_memory_source(), 0) {}

  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return stream; }
  Stream& copy_stream() override { return stream; }
  void copy_to_host(void* target, const void*, size_t bytes) override {
    std::memset(target, kValue, bytes);
  }
  void transfer_async(Stream&, const Copy& copy) override { asked = copy; }

  test::PlayedStream stream;
  Copy asked;

 private:
  Allocator allocator_;
};

// What `to` is asked to copy when bytes of another device are to come in.
Copy copy_in(FarDevice& to) {
  static FarDevice from(1);
  std::byte *there = nullptr, *here = nullptr;  // touched by neither
  to.stream.launched = 1;
  to.copy_async(to.stream, {here, &to.memory(), there, &from.memory(), kBytes});
  const auto* bytes = static_cast<const std::byte*>(to.asked.source);
  check(std::all_of(bytes, bytes + kBytes,
                    [](std::byte b) { return b == std::byte{kValue}; }),
        "what the other device had");
  return to.asked;
}

void stays_until_read() {
  config::set_simulated_devices("GPUx1");
  FarDevice to(0);
  const Copy copy = copy_in(to);
  check(copy.from == &pinned_memory(), "the staging memory is pinned");
  Allocator& pool = *DeviceManager::get().pinned_pool();
  {
    const BlockRef other = BlockRef::adopt(pool.try_allocate(kBytes));
    check(other->data != copy.source, "it is nobody else's while it is read");
  }
  to.stream.reached = 1;
  const BlockRef again = BlockRef::adopt(pool.try_allocate(kBytes));
  check(again->data == copy.source, "it is used again");
}
TEST(Staging, IsPinnedAndStaysUntilTheDeviceHasReadIt) {
  IN_A_FRESH_PROCESS(stays_until_read());
}

void is_the_hosts() {
  config::set_visible_devices({}, "GPU");
  FarDevice to(0);
  check(copy_in(to).from == &DeviceManager::get().host().memory(),
        "the staging memory is the host's");
}
TEST(Staging, IsOrdinaryMemoryWhenNobodyHasOther) {
  IN_A_FRESH_PROCESS(is_the_hosts());
}

void is_refused() {
  config::set_visible_devices({}, "GPU");
  FarDevice to(0);
  Allocator& host = DeviceManager::get().host().allocator();
  host.set_limit_bytes(4 << 20);
  BlockRef::adopt(host.allocate(2 << 20));  // which the host keeps
  copy_in(to);                              // but not if it is wanted
  fresh_process::refuses<errors::ResourceExhausted>(
      [&] { copy_in(to); }, "a copy that passes by the host");
}
TEST(Staging, NamesTheCopyWhenTheHostIsFull) {
  IN_A_FRESH_PROCESS(is_refused());
}

}  // namespace
}  // namespace berth
