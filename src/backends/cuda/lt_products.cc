#include "backends/cuda/lt_products.h"

#include <fmt/format.h>

#include <atomic>

#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/lt_choice.h"
#include "base/diagnostics.h"
#include "base/environment.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

constexpr char kVariable[] = "BERTH_CUDA_PRODUCTS";

// Reports each card and reason once.
void own_instead(const CudaCard& card, const std::string& of,
                 const std::string& why) {
  report_once(fmt::format("{} {}", static_cast<const void*>(&card), why),
              {"own-products", debugging::Severity::kWarning,
               fmt::format("{}: {}: computed by Berth's own kernels, which "
                           "are slower than cuBLASLt's: {}; {}=own says that "
                           "this is wanted",
                           card.features().name, of, why, kVariable)});
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kLtAlignment == 0;
}

class LtProduct final : public gpu::Kernel {
 public:
  LtProduct(CudaCard& card, cublasLtHandle_t handle,
            std::unique_ptr<LtProblem> problem, const LtChoice& choice)
      : card_(card),
        handle_(handle),
        problem_(std::move(problem)),
        choice_(choice) {}

  bool may_refuse() const override { return true; }

  void launch(gpu::Queue& queue, const gpu::Grid& grid,
              const gpu::KernelArg* args, int num_args) override {
    if (try_launch(queue, grid, args, num_args)) return;
    throw errors::Internal(fmt::format("cuBLASLt refuses a product: {}",
                                       lt_text(problem_->product())));
  }

  bool try_launch(gpu::Queue& queue, const gpu::Grid&,
                  const gpu::KernelArg* args, int num_args) override {
    if (refused_.load(std::memory_order_relaxed)) return false;
    const auto at = [&](int i) {
      return *static_cast<void* const*>(args[i].value);
    };
    LtProblem::Operands o;
    o.a = at(0);
    o.b = at(1);
    o.c = at(2);
    int next = 3;
    const gpu::MatrixProduct& p = problem_->product();
    if (p.bias) o.bias = at(next++);
    if (p.has_aux()) o.aux = at(next++);
    if (p.sums_b) o.sums = at(next++);
    if (next < num_args) o.scratch = at(next);
    o.scratch_bytes = choice_.scratch_bytes;
    // Part of a variable may begin at any address.
    const void* written[] = {o.c, o.aux, o.sums};
    for (const void* address : {o.a, o.b, o.bias}) {
      if (!is_aligned(address)) return false;
    }
    for (const void* address : written) {
      if (!is_aligned(address)) return false;
    }
    o.scratch = aligned(o.scratch);
    const CudaCard::Current here(card_);
    auto& q = static_cast<CudaQueue&>(queue);
    try {
      problem_->run(handle_, choice_.algorithm, o, q.appending());
      return true;
    } catch (const LtRefusal& refusal) {
      refused_ = true;
      own_instead(card_, lt_text(problem_->product()), refusal.what);
      return false;
    }
  }

  // Extra scratch, so that the library's can be aligned.
  static constexpr size_t kScratchAlignment = 256;

 private:
  static void* aligned(void* scratch) {
    const auto at = reinterpret_cast<uintptr_t>(scratch);
    return reinterpret_cast<void*>((at + kScratchAlignment - 1) /
                                   kScratchAlignment * kScratchAlignment);
  }

  CudaCard& card_;
  const cublasLtHandle_t handle_;
  const std::unique_ptr<LtProblem> problem_;
  const LtChoice choice_;
  std::atomic<bool> refused_{false};
};

}  // namespace

struct LtProducts::State {
  CudaCard& card;
  const std::string asked =
      environment_choice(kVariable, {"auto", "first", "own"});
  const bool tf32 = environment_switch("BERTH_TF32", false);
  const bool deterministic = environment_switch("BERTH_DETERMINISTIC", false);
  std::mutex mutex;
  bool opened = false;
  const LtLibrary* lt = nullptr;  // null: works without it
  cublasLtHandle_t handle = nullptr;
  std::unique_ptr<LtChoices> choices;

  explicit State(CudaCard& c) : card(c) {}

  // Returns false without a library; reports that once.
  bool open() {
    std::lock_guard lock(mutex);
    if (opened) return lt != nullptr;
    std::string why;
    const LtLibrary* found = lt_library(&why);
    if (found != nullptr) {
      const CudaCard::Current here(card);
      const cublasStatus_t status = found->cublasLtCreate(&handle);
      if (status == CUBLAS_STATUS_SUCCESS) {
        lt = found;
        choices = std::make_unique<LtChoices>(
            card, *lt, handle, asked == "auto" && !deterministic, tf32);
      } else {
        why = found->error("cublasLtCreate", status);
      }
    }
    opened = true;
    if (lt == nullptr) own_instead(card, "products", why);
    return lt != nullptr;
  }
};

LtProducts::LtProducts(CudaCard& card)
    : state_(std::make_unique<State>(card)) {}

LtProducts::~LtProducts() {
  if (state_->lt == nullptr) return;
  try {
    const CudaCard::Current here(state_->card);
    state_->lt->cublasLtDestroy(state_->handle);
  } catch (const errors::Error&) {
    // a lost card can take nothing back
  }
}

std::unique_ptr<gpu::Kernel> LtProducts::make(const gpu::MatrixProduct& product,
                                              size_t* scratch_bytes) {
  State& s = *state_;
  if (s.asked == "own" || !lt_takes(product) || !s.open()) return nullptr;
  try {
    const CudaCard::Current here(s.card);
    auto problem = std::make_unique<LtProblem>(*s.lt, product, s.tf32);
    const LtChoice choice = s.choices->choose(*problem);
    if (choice.scratch_bytes > 0) {
      *scratch_bytes = choice.scratch_bytes + LtProduct::kScratchAlignment;
    }
    return std::make_unique<LtProduct>(s.card, s.handle, std::move(problem),
                                       choice);
  } catch (const LtRefusal& refusal) {
    // The plain product is tried next.
    if (product.is_plain()) own_instead(s.card, lt_text(product), refusal.what);
    return nullptr;
  }
}

std::string why_no_lt() {
  if (environment(kVariable) == "own") return "";
  std::string why;
  if (lt_library(&why) != nullptr) return "";
  return fmt::format("products are by Berth's own kernels: {}", why);
}

}  // namespace berth::cuda
