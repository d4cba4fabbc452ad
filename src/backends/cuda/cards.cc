#include "backends/cuda/cards.h"

#include <fmt/format.h>

#include "backends/cuda/cuda_card.h"
#include "backends/cuda/lt_products.h"
#include "backends/cuda/nccl_library.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

struct FoundCards {
  std::vector<std::unique_ptr<gpu::Card>> cards;
  std::string why;

  FoundCards() {
    try {
      find();
    } catch (const errors::Error& e) {
      add(e.what());
    }
  }

 private:
  void find();
  void add(const std::string& more) {
    why += fmt::format("{}{}", why.empty() ? "" : "; ", more);
  }
};

void FoundCards::find() {
  if (environment_choice("BERTH_CUDA", {"on", "off"}) == "off") {
    return add("BERTH_CUDA=off");
  }
  std::string reason;
  const Driver* d = driver(&reason);
  if (d == nullptr) return add(reason);
  int count = 0;
  call(*d, d->cuDeviceGetCount, &count);
  if (count == 0) return add("the NVIDIA driver finds no GPU");
  const Nvrtc* nvrtc = Nvrtc::find(&reason);
  if (nvrtc == nullptr) {
    return add(fmt::format("an NVIDIA GPU is here, but {}", reason));
  }
  for (int i = 0; i < count; ++i) {
    try {
      cards.push_back(std::make_unique<CudaCard>(*d, *nvrtc, i));
    } catch (const errors::Error& e) {
      add(e.what());
    }
  }
  if (cards.size() < 2 || Nccl::find(&reason) != nullptr) return;
  add(fmt::format("sums between GPUs go by copies: {}", reason));
}

const FoundCards& found() {
  static const auto& f = immortal<FoundCards>();
  return f;
}

}  // namespace

const std::vector<std::unique_ptr<gpu::Card>>& cards() { return found().cards; }

const std::string& why_none() {
  static const auto& why = immortal<std::string>([] {
    const FoundCards& f = found();
    const std::string lt = f.cards.empty() ? "" : why_no_lt();
    return f.why + (f.why.empty() || lt.empty() ? "" : "; ") + lt;
  }());
  return why;
}

}  // namespace berth::cuda
