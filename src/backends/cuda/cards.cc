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

// Returns why a card cannot be used, or lacks a part of cuDNN.
std::string why_less(CudaCard& card) {
  try {
    card.context();
    const std::string why = card.cudnn().why_no_attention(card);
    if (why.empty()) return "";
    return fmt::format("attention on {} is by Berth's own kernels: {}",
                       card.features().name, why);
  } catch (const errors::Error& e) {
    return fmt::format("{} cannot be used: {}", card.features().name, e.what());
  }
}

}  // namespace

const std::vector<std::unique_ptr<gpu::Card>>& cards() { return found().cards; }

const std::string& why_none() {
  static const auto& why = immortal<std::string>([] {
    const FoundCards& f = found();
    std::string why = f.why;
    const auto add = [&](const std::string& more) {
      if (!more.empty()) why += (why.empty() ? "" : "; ") + more;
    };
    if (!f.cards.empty()) add(why_no_lt());
    for (const auto& card : f.cards)
      add(why_less(static_cast<CudaCard&>(*card)));
    return why;
  }());
  return why;
}

}  // namespace berth::cuda
