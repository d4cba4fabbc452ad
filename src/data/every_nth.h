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
  EveryNth(std::unique_ptr<PassStream<T>> source, int64_t n, int64_t index,
           std::stop_token stop)
      : source_(std::move(source)),
        n_(n),
        stop_(std::move(stop)),
        skip_(index) {}
  bool next(T* out) override {
    for (; skip_ > 0; --skip_) {
      if (stopped(stop_) || !source_->next(out)) return false;
    }
    skip_ = n_ - 1;
    return source_->next(out);
  }
  void save(PassWriter& w) override {
    w.put(skip_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    skip_ = r.number(0, n_ - 1);
    source_->restore(r);
  }

 private:
  const std::unique_ptr<PassStream<T>> source_;
  const int64_t n_;
  const std::stop_token stop_;
  int64_t skip_;  // values of others before the next
};

}  // namespace berth::data

#endif  // BERTH_DATA_EVERY_NTH_H_
