// Calls of functions that the user gave to a dataset.
//
// They run eagerly on the host, whatever tapes, traces and device scopes the
// reading thread has open; what they throw names the transform.

#ifndef BERTH_DATA_USER_CALL_H_
#define BERTH_DATA_USER_CALL_H_

#include <optional>

#include "data/node.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::data {

// Gives the calling thread a fresh state until the end of the block.
class UserCall {
 public:
  UserCall();
  ~UserCall();
  UserCall(const UserCall&) = delete;
  UserCall& operator=(const UserCall&) = delete;

 private:
  DispatchGuard eager_;
  Site site_;
  const char* layer_;
  std::optional<OnDevice> host_;
};

// Rethrows the exception being handled as the error of element `number` of
// `node`, with its code if it has one.
[[noreturn]] void raise_for(const Node& node, int64_t number);

// Returns fn(), called as above.
template <class F>
auto call_user(const Node& node, int64_t number, F&& fn) {
  try {
    UserCall state;
    return fn();
  } catch (...) {
    raise_for(node, number);
  }
}

// Returns fn(element) after checking that it has components, all concrete.
Tensors call_map(const Node& node, int64_t number, const MapFunction& fn,
                 const Tensors& element);

}  // namespace berth::data

#endif  // BERTH_DATA_USER_CALL_H_
