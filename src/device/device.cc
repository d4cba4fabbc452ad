#include "device/device.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/bytes_text.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth {

Device::Device(DeviceName name, std::string description,
               const KernelTable* kernels, const MemoryOptions& memory)
    : name_(std::move(name)),
      id_(name_.str()),
      description_(std::move(description)),
      kernels_(kernels),
      memory_(make_memory_space(name_, memory, this)),
      host_memory_(make_memory_space(name_, {}, nullptr)) {}

namespace {

// Host memory for a copy on its way: pinned if a device is to read it while
// the host goes on. This may be a stream's thread, which must not wait for
// streams until memory is free.
BlockRef staging_block(size_t bytes, bool device_reads) {
  const DeviceManager& devices = DeviceManager::get();
  Allocator* pool = device_reads ? devices.pinned_pool() : nullptr;
  Allocator& host = devices.host().allocator();
  Block* block = pool ? pool->try_allocate(bytes) : nullptr;
  if (!block) block = host.try_allocate(bytes);
  if (!block) {
    host.empty_cache();
    block = host.try_allocate(bytes);
  }
  if (block) return BlockRef::adopt(block);
  throw errors::ResourceExhausted(fmt::format(
      "{} is out of memory: {} asked for a copy that passes by the host, "
      "{} reserved; copy less at once, or raise the limit",
      devices.host().short_name(), bytes_text(static_cast<int64_t>(bytes)),
      bytes_text(static_cast<int64_t>(host.info().reserved_bytes))));
}

}  // namespace

void Device::copy_async(Stream& stream, const Copy& copy) {
  if (copy.bytes == 0) return;  // it may lie nowhere
  if (memory().reaches(*copy.from) && memory().reaches(*copy.to)) {
    return transfer_async(stream, copy);
  }
  // An end that is somebody else's, who copies it; if this device is not the
  // host, then by way of the host.
  if (memory().host_addressable) {
    if (!copy.from->host_addressable) {
      return copy.from->device->copy_to_host(copy.target, copy.source,
                                             copy.bytes);
    }
    return copy.to->device->copy_from_host(copy.target, copy.source,
                                           copy.bytes);
  }
  const bool comes_in = copy.to == &memory();
  const BlockRef staged = staging_block(copy.bytes, comes_in);
  Copy in = copy, out = copy;
  in.target = staged->data;
  out.source = staged->data;
  in.to = out.from = &space_of(*staged.get());
  if (comes_in) {
    copy.from->device->copy_to_host(in.target, in.source, in.bytes);
    transfer_async(stream, out);
    add_use(staged.get(), stream.record());
  } else {
    transfer_async(stream, in);
    copy.to->device->copy_from_host(out.target, out.source, out.bytes);
  }
}

void Device::transfer_async(Stream&, const Copy& copy) {
  std::memcpy(copy.target, copy.source, copy.bytes);
}

void Device::fill_async(Stream&, void* target, int value, size_t bytes) {
  std::memset(target, value, bytes);
}

namespace {

// Copies on `stream` and waits.
void copy_now(Stream& stream, const Copy& copy, const char* what) {
  Work work;
  work.what = what;
  work.moved_bytes = static_cast<double>(copy.bytes);
  work.context = const_cast<Copy*>(&copy);
  work.run = [](void* context, Stream& stream) {
    stream.device().copy_async(stream, *static_cast<const Copy*>(context));
  };
  stream.launch(work);
  stream.synchronize(stream.record());
}

}  // namespace

void Device::copy_to_host(void* target, const void* source, size_t bytes) {
  copy_now(out_stream(), {target, &host_memory(), source, &memory(), bytes},
           "CopyToHost");
}

void Device::copy_from_host(void* target, const void* source, size_t bytes) {
  // The memory may have had another owner, whose work is still queued.
  copy_stream().wait_for_reuse(compute_stream().record());
  copy_now(copy_stream(), {target, &memory(), source, &host_memory(), bytes},
           "CopyFromHost");
}

}  // namespace berth
