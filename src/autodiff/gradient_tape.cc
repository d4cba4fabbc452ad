// GradientTape, the public class over its Recorder.

#include "berth/gradient_tape.h"

#include "autodiff/recorder.h"

namespace berth {

GradientTape::GradientTape(TapeOptions options, Site site)
    : recorder_(std::make_unique<Recorder>(options, site)) {}

GradientTape::~GradientTape() { Recorder::end(std::move(recorder_)); }

void GradientTape::watch(const Tensor& x, Site site) {
  set_site(site);
  recorder_->check_thread("watch()");
  recorder_->watch(x);
}
void GradientTape::watch(const Variable& v, Site site) {
  watch(v.handle(), site);
}
void GradientTape::stop(Site site) {
  set_site(site);
  recorder_->check_thread("stop()");
  recorder_->stop();
}
void GradientTape::set_persistent(bool persistent) {
  recorder_->set_persistent(persistent);
}
void GradientTape::resume(Site site) {
  set_site(site);
  recorder_->check_thread("resume()");
  recorder_->resume();
}

Tensors GradientTape::gradient(const Tensor& target,
                               const std::vector<Source>& sources,
                               const GradientOptions& options, Site site) {
  return gradient(Tensors{target}, sources, options, site);
}

Tensors GradientTape::gradient(const Tensors& targets,
                               const std::vector<Source>& sources,
                               const GradientOptions& options, Site site) {
  set_site(site);
  recorder_->check_thread("gradient()");
  return recorder_->gradient(targets, sources, options);
}

}  // namespace berth
