// Model::fits(): does a training step fit, and which is the largest that does.

#include <fmt/format.h>

#include <optional>

#include "base/bytes_text.h"
#include "berth/errors.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/prediction/planned_step.h"
#include "keras/models/layer_state.h"
#include "keras/training/training.h"
#include "op/device_scope.h"
#include "ops/random_key.h"

namespace berth::keras {

FitsReport Model::fits(int64_t batch, int64_t memory_bytes, Site site) {
  Training& t = *training_;
  t.check_compiled("fits");
  const int64_t least = t.num_replicas();
  if (batch < least || batch > distribute::kMostExamples || memory_bytes < 0 ||
      t.servers() != nullptr) {
    throw errors::InvalidArgument(fmt::format(
        "model.fits of \"{}\"{}: a batch of {} in {} bytes{}; expected {} to "
        "{} examples, memory of at least 0 (0: what the devices have)",
        name(), where_text(nullptr, site), batch, memory_bytes,
        t.servers() ? " on parameter servers, whose steps cannot be planned"
                    : "",
        least, distribute::kMostExamples));
  }
  std::optional<UncountedRandomKeys> uncounted;
  if (!weights().empty()) uncounted.emplace();
  if (t.core && t.core->undecided() != nullptr) {
    distribute::choose_plan(*t.core, t.step_to_plan(batch, site));
  }
  const distribute::StepMemory m = distribute::fits_step(
      t.core, [&](int64_t n) { return t.step_to_plan(n, site); }, batch,
      memory_bytes, t.options->placement);
  FitsReport report{.fits = m.fits,
                    .batch = batch,
                    .largest_batch = m.largest_batch,
                    .devices = {},
                    .memory = {}};
  for (const auto& d : m.devices) {
    report.devices.push_back({d.device, d.peak_bytes, d.available_bytes});
  }
  for (const auto& h : m.holders) {
    report.memory.push_back({h.device, h.what, h.bytes, h.site});
  }
  return report;
}

std::string FitsReport::str() const {
  std::string s = fmt::format("a step on {} examples {}", batch,
                              fits ? "fits" : "does not fit");
  s += largest_batch < 0 ? "; the devices have no limit"
       : largest_batch == 0
           ? "; no batch does"
           : fmt::format("; the largest batch that fits: {}", largest_batch);
  for (const Device& d : devices) {
    s += fmt::format(
        "\n  {}: {}{}", d.device, bytes_text(d.peak_bytes),
        d.available_bytes > 0 ? " of " + bytes_text(d.available_bytes) : "");
    int shown = 0;
    for (const Holder& m : memory) {
      if (m.device != d.device || ++shown > 5) continue;
      s += fmt::format("\n    {} {}{}", bytes_text(m.bytes), m.what,
                       where_text(nullptr, m.site));
    }
  }
  return s + "\n";
}

}  // namespace berth::keras
