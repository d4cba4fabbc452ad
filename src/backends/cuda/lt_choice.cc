#include "backends/cuda/lt_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cuda/lt_timing.h"

namespace berth::cuda {

namespace {

constexpr int kMostTimed = 12;  // per product
// Number of products that a process times, so that a program in which every
// product has a different shape does not wait for each.
constexpr int kMostProducts = 512;
// With fewer operations the launch takes as long as the product.
constexpr double kLeastOperations = 1e8;

// Scratch that the library may use, as NVIDIA recommends.
size_t scratch_for(int architecture) {
  return size_t{architecture >= 90 ? 32u : 4u} << 20;
}

double operations(const gpu::MatrixProduct& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.k) * static_cast<double>(p.batches);
}

}  // namespace

LtChoices::LtChoices(CudaCard& card, const LtLibrary& lt,
                     cublasLtHandle_t handle, bool timed, bool tf32)
    : card_(card),
      lt_(lt),
      handle_(handle),
      timed_(timed),
      tf32_(tf32),
      most_scratch_(scratch_for(card.architecture())),
      disk_(timed ? CubinCache::default_folder("cublaslt") : "",
            "cublaslt choice") {}

std::string LtChoices::key_of(const gpu::MatrixProduct& p) const {
  return fmt::format("cuBLASLt {}, {}, sm_{}, {} bytes{}: {}",
                     lt_.cublasLtGetVersion(), card_.features().name,
                     card_.architecture(), most_scratch_, tf32_ ? ", TF32" : "",
                     lt_text(p));
}

bool LtChoices::find_kept(const LtProblem& problem, const std::string& key,
                          LtChoice* choice) {
  const std::optional<std::string> bytes = disk_.find(key);
  if (!bytes || bytes->size() != sizeof(choice->algorithm)) return false;
  std::memcpy(&choice->algorithm, bytes->data(), bytes->size());
  return problem.check(handle_, choice->algorithm, &choice->scratch_bytes) &&
         choice->scratch_bytes <= most_scratch_;
}

LtChoice LtChoices::make(const LtProblem& problem, bool* settled) {
  const bool time = timed_ && num_timed_ < kMostProducts &&
                    operations(problem.product()) >= kLeastOperations;
  cublasLtMatmulHeuristicResult_t found[kMostTimed] = {};
  int count =
      problem.propose(handle_, most_scratch_, time ? kMostTimed : 1, found);
  int best = 0;
  if (time && count > 1) {
    ++num_timed_;
    best = fastest(card_, problem, handle_, found, count);
    *settled = best >= 0;
    best = std::max(best, 0);
  }
  const auto& b = found[best];
  return {b.algo, b.workspaceSize};
}

LtChoice LtChoices::choose(const LtProblem& problem) {
  const std::string key = key_of(problem.product());
  // Times one product at a time: concurrent timings are meaningless.
  std::lock_guard lock(mutex_);
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  LtChoice choice;
  if (!find_kept(problem, key, &choice)) {
    bool settled = false;
    choice = make(problem, &settled);
    if (settled) {
      disk_.keep(key,
                 std::string(reinterpret_cast<const char*>(&choice.algorithm),
                             sizeof(choice.algorithm)));
    }
  }
  made_.emplace(key, choice);
  return choice;
}

}  // namespace berth::cuda
