// Fuzz target of the readers of public placement formats: any bytes give a
// problem or a named error. A small problem is then planned for a few moves.
// The plan must keep its limits, be no less than its bound, and read back from
// a split. Bytes after the first NUL are a split.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "berth/errors.h"
#include "cli/planner/formats.h"
#include "cli/planner/splits_testing.h"
#include "planner/planner.h"

namespace {

using namespace berth;

// Larger ones would leave no time for other inputs.
constexpr int32_t kMostOps = 60;

void follow(const PlanProblem& p, const std::string& split) {
  if (p.num_ops() > kMostOps) return;
  try {
    evaluate(p, read_split(p, split, "split"));
  } catch (const errors::InvalidArgument&) {  // invalid, or of another problem
  }
  if (p.num_devices() > 6) return;
  const PlanAnswer a = plan_placement(p, {.moves = 800, .threads = 1});
  if (a.status != PlanStatus::kPlanned) return;
  if (!a.evaluation.violations.empty()) std::abort();
  if (a.value < a.bound.value * (1 - 1e-9)) std::abort();
  const PlacePlan back = read_split(p, split_text(p, a.plan), "split");
  if (back.device != a.plan.device) std::abort();
}

template <class Read>
void try_reader(const std::string& split, Read&& read) {
  try {
    follow(read(), split);
  } catch (const errors::InvalidArgument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const std::string text = all.substr(0, end);
  const std::string split = end == std::string::npos ? "" : all.substr(end + 1);
  for (const Objective o : {Objective::kLatency, Objective::kThroughput}) {
    try_reader(split,
               [&] { return read_dnn_partitioning(text, "fuzz.json", o); });
  }
  try_reader(split, [&] { return read_doppler(text, "fuzz.txt", 2); });
  return 0;
}
