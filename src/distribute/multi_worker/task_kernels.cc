// Kernels of _TaskStart and _TaskEnd, on host memory.

#include <cstring>

#include "distribute/data_parallel/split_batch.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "op/kernel.h"

namespace berth::distribute {

namespace {

using Ints = std::vector<int64_t>;

size_t bytes_of(const View& v) {
  return static_cast<size_t>(v.size()) * size_of(v.dtype);
}

CollectiveExecutor* link_of(const PrepareArgs& args) {
  const auto id = args.attr<int64_t>("link");
  return id == TaskPart::kNoLink ? nullptr : &CollectiveExecutor::find(id);
}

std::shared_ptr<StepExchange> exchange_of(CollectiveExecutor* link,
                                          const PrepareArgs& args) {
  if (link == nullptr) return nullptr;
  return link->exchange(args.attr<int64_t>("program"),
                        args.attr<int64_t>("number"));
}

class TaskStart final : public Prepared {
 public:
  explicit TaskStart(const PrepareArgs& args)
      : link_(link_of(args)), exchange_(exchange_of(link_, args)) {
    if (!exchange_ || exchange_->values) return;  // or bound before
    StepExchange& x = *exchange_;
    const auto& method = args.attr<std::string>("how");
    x.method = method == "ordered"  ? StepExchange::Method::kOrdered
               : method == "gather" ? StepExchange::Method::kGather
                                    : StepExchange::Method::kSum;
    x.dtype = args.attr<DType>("T");
    x.sizes = args.attr<Ints>("sizes");
    x.starts = args.attr<Ints>("starts");
    x.counts = args.attr<Ints>("counts");
    x.slices = static_cast<int32_t>(args.attr<int64_t>("slices"));
    x.lengths = args.attr<Ints>("lengths");
    x.channel = static_cast<int>(args.attr<int64_t>("channel"));
    x.tag.what = args.attr<std::string>("what");
    x.tag.timeout_seconds = args.attr<double>("timeout_seconds");
    link_->prepare(x);
  }

  void run(const KernelCall& call) const override {
    *call.out[0].as<int32_t>() = 0;
    if (!exchange_) return;
    link_->before_begin(*exchange_);
    auto* to = static_cast<std::byte*>(exchange_->values.get());
    // A task without examples adds nothing.
    if (call.num_in == 0) std::memset(to, 0, exchange_->value_bytes);
    for (int i = 0; i < call.num_in; ++i) {
      const size_t n = bytes_of(call.in[i]);
      if (n > 0) std::memcpy(to, call.in[i].data, n);
      to += n;
    }
    link_->begin(exchange_);
  }

 private:
  CollectiveExecutor* const link_;  // null: the plan is only inspected
  const std::shared_ptr<StepExchange> exchange_;
};

class TaskEnd final : public Prepared {
 public:
  explicit TaskEnd(const PrepareArgs& args)
      : link_(link_of(args)), exchange_(exchange_of(link_, args)) {}

  void run(const KernelCall& call) const override {
    if (!exchange_) return;
    link_->end(*exchange_);
    const auto* from = static_cast<const std::byte*>(exchange_->results.get());
    for (int o = 0; o < call.num_out; ++o) {
      const size_t n = bytes_of(call.out[o]);
      if (n > 0) std::memcpy(call.out[o].data, from, n);
      from += n;
    }
  }

 private:
  CollectiveExecutor* const link_;
  const std::shared_ptr<StepExchange> exchange_;
};

template <class T>
void add_task_kernel(const char* op, KernelTable& table) {
  table.prepared(
      op, kEveryType,
      [](const PrepareArgs& args) -> std::unique_ptr<Prepared> {
        return std::make_unique<T>(args);
      },
      "tasks", false);
}

// Runs before devices are made.
const bool kTaskKernels = [] {
  register_kernels("CPU", [](KernelTable& table) {
    add_task_kernel<TaskStart>("_TaskStart", table);
    add_task_kernel<TaskEnd>("_TaskEnd", table);
  });
  return true;
}();

}  // namespace

// Referenced by users of the kernels, so that a static library keeps them.
bool task_kernels_are_there() { return kTaskKernels; }

}  // namespace berth::distribute
