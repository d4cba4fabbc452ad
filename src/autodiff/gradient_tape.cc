#include "berth/gradient_tape.h"

#include "autodiff/recorder.h"

namespace berth {

GradientTape::GradientTape(TapeOptions options)
    : recorder_(std::make_unique<Recorder>(options)) {}

GradientTape::~GradientTape() = default;

void GradientTape::watch(const Tensor& x) { recorder_->watch(x); }
void GradientTape::watch(const Variable& v) { recorder_->watch(v.handle()); }
void GradientTape::stop() { recorder_->stop(); }

Tensors GradientTape::gradient(const Tensor& target,
                               const std::vector<Source>& sources,
                               const GradientOptions& options, Site site) {
  set_site(site);
  return recorder_->gradient({target}, sources, options);
}

Tensors GradientTape::gradient(const Tensors& targets,
                               const std::vector<Source>& sources,
                               const GradientOptions& options, Site site) {
  set_site(site);
  return recorder_->gradient(targets, sources, options);
}

}  // namespace berth
