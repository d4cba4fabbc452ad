#include "op/dispatcher.h"

#include "op/device_scope.h"

namespace berth {

constinit thread_local ThreadState t_state
    __attribute__((tls_model("initial-exec"))) = {};

void Dispatcher::push() {
  below_ = t_state.top;
  t_state.top = this;
  pushed_ = true;
}

void Dispatcher::pop() {
  if (!pushed_) return;
  pushed_ = false;
  if (t_state.top == this) {
    t_state.top = below_;
    return;
  }
  for (Dispatcher* d = t_state.top; d; d = d->below_) {
    if (d->below_ == this) {
      d->below_ = below_;
      return;
    }
  }
}

void Dispatcher::next(const OpDef& op, std::span<const Tensor* const> in,
                      const Attrs* attrs, std::span<Tensor> out) {
  const DispatchGuard guard(below_);
  berth::apply(op, in, attrs, out);
}

void raise_with_place(const errors::Error& e, const char* layer, Site site) {
  const std::string_view message = e.what();
  const std::string place = where_text(layer, site);
  if (message.find(place) != message.npos) throw;
  errors::raise(e.code(), std::string(message) + place);
}

std::string where_text() { return where_text(t_state.layer, t_state.site); }

}  // namespace berth
