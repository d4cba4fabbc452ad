#include "backends/cuda/nccl_kernels.h"

#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/nccl_library.h"
#include "backends/cuda/nccl_meeting.h"
#include "backends/cuda/nccl_sums.h"
#include "device/device.h"

namespace berth::cuda {

namespace {

constexpr DTypeSet kNcclTypes =
    kRealFloats | kIntegerTypes | dtype_bit(int8) | kComplexTypes;

// Complex numbers are summed part by part.
struct NcclElements {
  NcclType type;
  size_t each = 1;
};

NcclElements elements_of(DType dtype) {
  switch (dtype) {
    case float64:
      return {kNcclFloat64};
    case float16:
      return {kNcclFloat16};
    case bfloat16:
      return {kNcclBfloat16};
    case int8:
      return {kNcclInt8};
    case uint8:
      return {kNcclUint8};
    case int32:
      return {kNcclInt32};
    case int64:
      return {kNcclInt64};
    case complex64:
      return {kNcclFloat32, 2};
    case complex128:
      return {kNcclFloat64, 2};
    default:
      return {kNcclFloat32};
  }
}

gpu::QueueStream& stream_of(const KernelCall& call) {
  return static_cast<gpu::QueueStream&>(*call.context->stream);
}

// Copies input 0 to output 0, unless they share memory.
void pass_on(const KernelCall& call) {
  const View &in = call.in[0], &out = call.out[0];
  if (in.data == out.data) return;
  gpu::QueueStream& stream = stream_of(call);
  const MemorySpace& here = stream.device().memory();
  stream.queue().copy({out.data, &here, in.data, &here,
                       static_cast<size_t>(in.size()) * size_of(in.dtype)});
}

class NcclStart final : public Prepared {
 public:
  NcclStart(CudaCard& card, const PrepareArgs& args)
      : card_(card), rank_(static_cast<int>(args.attr<int64_t>("rank"))) {
    const NcclElements elements = elements_of(args.in[0].dtype);
    call_.group = args.attr<int64_t>("group");
    call_.ranks = static_cast<int>(args.attr<int64_t>("ranks"));
    call_.what = args.attr<std::string>("what");
    call_.type = elements.type;
    call_.count =
        static_cast<size_t>(args.in[0].shape->num_elements()) * elements.each;
    call_.timeout_seconds = args.attr<double>("timeout_seconds");
    if (call_.timeout_seconds <= 0) {
      call_.timeout_seconds = NcclSums::default_timeout_seconds();
    }
  }

  void run(const KernelCall& call) const override {
    pass_on(call);
    gpu::QueueStream& stream = stream_of(call);
    NcclMember member;
    member.card = &card_;
    member.device = stream.device().short_name();
    member.data = call.out[0].data;
    member.begin = NcclEvent(card_);
    member.end = NcclEvent(card_);
    card_.call(card_.driver().cuEventRecord, member.begin.get(),
               static_cast<CudaQueue&>(stream.queue()).appending());
    NcclMeeting::of_thread().come(call_, rank_, std::move(member), stream);
  }

 private:
  CudaCard& card_;
  const int rank_;
  NcclMeeting::Call call_;
};

class NcclEnd final : public Prepared {
 public:
  NcclEnd(CudaCard& card, const PrepareArgs& args)
      : card_(card),
        group_(args.attr<int64_t>("group")),
        rank_(static_cast<int>(args.attr<int64_t>("rank"))) {}

  void run(const KernelCall& call) const override {
    const std::shared_ptr<NcclRound> round =
        NcclMeeting::of_thread().leave(group_, rank_);
    NcclSums::get().await_issue(*round);
    auto& queue = static_cast<CudaQueue&>(stream_of(call).queue());
    card_.call(card_.driver().cuStreamWaitEvent, queue.appending(),
               round->members[static_cast<size_t>(rank_)].end.get(), 0u);
    queue.watch(round);
    pass_on(call);
  }

 private:
  CudaCard& card_;
  const int64_t group_;
  const int rank_;
};

template <class T>
void add_one(const char* op, CudaCard& card, KernelTable& table) {
  KernelDef def;
  def.label = "nccl";
  def.dtypes = kNcclTypes;
  def.in_place = true;
  def.prepare = [&card](const PrepareArgs& args) -> std::unique_ptr<Prepared> {
    return std::make_unique<T>(card, args);
  };
  table.add(op, std::move(def));
}

}  // namespace

void add_nccl_kernels(CudaCard& card, KernelTable& table) {
  std::string why;
  if (Nccl::find(&why) == nullptr) return;
  add_one<NcclStart>("_AllReduceStart", card, table);
  add_one<NcclEnd>("_AllReduceEnd", card, table);
}

}  // namespace berth::cuda
