#include "backends/cuda/scenario_testing.h"
#include "backends/gpu/stream_recording.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth::cuda {

namespace {

const Driver& fake_driver() {
  std::string why;
  const Driver* d = driver(&why);
  if (d == nullptr) throw errors::Internal(why);
  return *d;
}

const Nvrtc& nvrtc() {
  std::string why;
  const Nvrtc* n = Nvrtc::find(&why);
  if (n == nullptr) throw errors::Internal(why);
  return *n;
}

const KernelTable& no_kernels() {
  static const KernelTable table;
  return table;
}

BlockRef block_of(Device& d, size_t bytes) {
  return BlockRef::adopt(d.allocator().allocate(bytes));
}

constexpr size_t kBytes = 32;

void launch_kernel(CudaCard& card, gpu::QueueStream& stream, void* data) {
  const auto module = card.module(small_source());
  const std::shared_ptr<gpu::Kernel> kernel = module->kernel("scale");
  launch_on(stream, [kernel, data, module](Stream& s) {
    const float by = 2;
    const gpu::KernelArg args[] = {{&data, 0}, {&by, sizeof(by)}};
    kernel->launch(static_cast<gpu::QueueStream&>(s).queue(), {{1, 1, 1}, 256},
                   args, 2);
  });
}

// Fills all bytes by a recording that is made twice, like that of a plan whose
// memory has moved, and replayed; work that cannot be recorded runs directly.
void fill_recorded(gpu::GpuDevice& d, gpu::QueueStream& stream,
                   std::byte* data) {
  gpu::StreamRecording recording(stream, 0);
  for (const int value : {9, 7}) {
    launch_on(stream, [&](Stream&) {
      recording.record([&](gpu::StreamRecording&) {
        stream.queue().fill(data, value, kBytes);
      });
    });
    synchronize(stream.record());
  }
  launch_on(stream, [&](Stream&) { recording.replay(); });
  synchronize(stream.record());
  const uint64_t sevens = 0x0707070707070707;
  launch_on(stream, [&](Stream& s) {
    d.copy_async(s,
                 {data, &d.memory(), &sevens, &d.host_memory(), sizeof sevens});
  });
}

// Copies the bytes of one device to the other after `after`.
Event copy_over(gpu::GpuDevice& to, const BlockRef& target,
                gpu::GpuDevice& from, const BlockRef& source, Event after) {
  Stream& stream = to.copy_stream();
  stream.wait(after);
  launch_on(stream, [&to, &from, target, source](Stream& s) {
    to.copy_async(
        s, {target->data, &to.memory(), source->data, &from.memory(), kBytes});
  });
  return stream.record();
}

}  // namespace

gpu::KernelSource small_source() {
  gpu::KernelSource source;
  source.generated =
      "KERNEL(FLAT_SIZE, scale)(BUF(f32, x), const f32 by) {\n"
      "  AT(f32, x);\n"
      "  x[ITEM] = x[ITEM] * by;\n"
      "}\n";
  return source;
}

CardPair::CardPair(size_t limit_bytes) {
  for (int i = 0; i < 2; ++i) {
    cards_.push_back(std::make_unique<CudaCard>(fake_driver(), nvrtc(), i));
  }
  for (int i = 0; i < 2; ++i) {
    // The manager has no devices with these ids.
    devices_.push_back(std::make_unique<gpu::GpuDevice>(
        GpuPart{.id = 40 + i, .physical = i, .memory_limit_bytes = limit_bytes},
        card(i), &no_kernels(), "a test"));
  }
}

std::vector<unsigned char> run_scenario() {
  CardPair pair;
  gpu::GpuDevice& first = pair.device(0);
  gpu::GpuDevice& second = pair.device(1);
  const std::vector<unsigned char> ones(kBytes, 1);
  std::vector<unsigned char> back(kBytes, 0);
  const BlockRef a = block_of(first, kBytes), b = block_of(second, kBytes);
  first.copy_from_host(a->data, ones.data(), kBytes);
  auto& stream = static_cast<gpu::QueueStream&>(first.compute_stream());
  fill_recorded(first, stream, a->data);
  WorkTime time;
  launch_on(
      stream,
      [&](Stream& s) { first.fill_async(s, a->data + 16, 3, kBytes - 16); },
      &time);
  launch_kernel(pair.card(0), stream, a->data);
  const Event copied = copy_over(second, b, first, a, stream.record());
  synchronize(copied);
  second.copy_to_host(back.data(), b->data, kBytes);
  synchronize(stream.record());
  if (time.end_us < time.begin_us) throw errors::Internal("no time");
  return back;
}

}  // namespace berth::cuda
