// EveryNth: every n-th value of a stream, from number `index` on. One thread.

#ifndef BERTH_DATA_EVERY_NTH_H_
#define BERTH_DATA_EVERY_NTH_H_

#include <memory>
#include <stop_token>
#include <utility>

#include "data/pass_state.h"

namespace berth::data {

template <class T>
class EveryNth final : public PassStream<T> {
 public:
  // `node`: where it has a place of its own in what is saved.
  EveryNth(std::unique_ptr<PassStream<T>> source, int64_t n, int64_t index,
           std::stop_token stop, const Node* node = nullptr)
      : source_(std::move(source)),
        n_(n),
        stop_(std::move(stop)),
        node_(node),
        skip_(index) {}
  bool next(T* out) override {
    for (; skip_ > 0; --skip_) {
      if (stopped(stop_) || !source_->next(out)) return false;
    }
    skip_ = n_ - 1;
    return source_->next(out);
  }
  void state(PassState& s) override {
    if (node_ != nullptr) s.begin(*node_);
    s(skip_, 0, n_ - 1);
    s(source_);
  }

 private:
  const std::unique_ptr<PassStream<T>> source_;
  const int64_t n_;
  const std::stop_token stop_;
  const Node* const node_;
  int64_t skip_;  // values of others before the next
};

}  // namespace berth::data

#endif  // BERTH_DATA_EVERY_NTH_H_
