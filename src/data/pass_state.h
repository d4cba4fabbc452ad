// PassWriter, PassReader: where a pass stands, as a list of values.
//
// Iterator::save() lets each stream of a pass write itself, the reader's end
// of the chain first; restore() opens a new pass and lets each stream read in
// the same order. A stream writes begin(), what it knows, then the streams it
// reads:
//   void state(PassState& s) override {
//     s.begin(node_);
//     s(left_, 0, node_.count());
//     s.until_end(source_);
//   }
// or, where more differs than the direction, save() and restore().
// save() is called between two next(), by the thread that reads the pass, and
// the pass goes on afterwards. restore() is called once, on a stream that was
// opened with PassInfo::restoring and has not been read: it opens no threads
// before. A stream with threads holds them still while it saves what they
// read (prefetch.cc). What is read may be damaged or hostile: numbers are
// checked where they are read. One thread.

#ifndef BERTH_DATA_PASS_STATE_H_
#define BERTH_DATA_PASS_STATE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/node.h"

namespace berth::data {

// Elements that one stream may hold back in a saved state.
inline constexpr int64_t kMostSaved = 1 << 20;

class PassWriter {
 public:
  PassWriter();
  ~PassWriter();
  PassWriter(const PassWriter&) = delete;
  PassWriter& operator=(const PassWriter&) = delete;

  // What follows belongs to a stream of `node`.
  void begin(const Node& node);
  void put(bool value) { put(int64_t{value}); }
  void put(int value) { put(int64_t{value}); }
  void put(int64_t value);
  void put(uint64_t value) { put(static_cast<int64_t>(value)); }
  void put(double value);  // bit for bit
  void put(std::string_view bytes);
  void put(const char* text) { put(std::string_view(text)); }
  // Tensors are kept, not copied, unless they are text or lie on a device.
  void put(const Tensor& tensor);
  void put(const Tensors& element);
  // Many numbers, such as row numbers: one tensor.
  void put(const std::vector<int64_t>& numbers);
  void put(const std::optional<PassError>& failure);
  // Writes what `node` and those before it remember between passes
  // (Node::memory), then calls save(), which saves the streams of `node`: by a
  // stream that opens `node` later than when it was opened itself. Threads of
  // these streams may begin passes until they are saved: it is looked up
  // afterwards.
  template <class Save>
  void put_memory(const Node& node, Save&& save) {
    const size_t at = memory_place();
    save();
    fill_memory(at, node);
  }

  // Throws errors::FailedPrecondition "<where>: cannot save ...".
  [[noreturn]] static void cannot(const Node& node, const std::string& why);

  IteratorState finish();

 private:
  void add_tensor(Tensor tensor);
  size_t memory_place();
  void fill_memory(size_t at, const Node& node);
  std::unique_ptr<nlohmann::json> items_;
  Tensors tensors_;
};

class PassReader {
 public:
  // Throws errors::InvalidArgument for a text that is not a saved state or was
  // written by a newer version.
  explicit PassReader(const IteratorState& state);
  ~PassReader();
  PassReader(const PassReader&) = delete;
  PassReader& operator=(const PassReader&) = delete;

  // Throws errors::InvalidArgument unless a stream of such a node comes next:
  // "the saved state has batch (train.cc:9) where this pipeline has shuffle".
  void begin(const Node& node);
  // Each reads what the put() of its type wrote, and throws errors::DataLoss
  // where something else stands or a number is not in [low, high].
  int64_t number() {
    return number(std::numeric_limits<int64_t>::min(),
                  std::numeric_limits<int64_t>::max());
  }
  // The default `high` leaves room for later increments.
  int64_t number(int64_t low, int64_t high = int64_t{1} << 62);
  uint64_t word() { return static_cast<uint64_t>(number()); }
  bool flag() { return number(0, 1) == 1; }
  double real();
  std::string text();
  // On the device where it was, if there is such a one, else on the host.
  Tensor tensor();
  Tensors element();
  std::vector<int64_t> numbers();
  std::optional<PassError> failure();
  // Sets what the node and those before it remember between passes: after
  // `node` has been opened, which counts as a pass.
  void memory(const Node& node);

  // Throws unless everything has been read.
  void finish();
  // Throws errors::DataLoss "the saved state of <where>: <what>".
  [[noreturn]] void damaged(const std::string& what) const;

 private:
  const nlohmann::json& take(const char* expected);
  const Tensor& stored(const nlohmann::json& item);
  const IteratorState& state_;
  std::unique_ptr<nlohmann::json> items_;
  size_t at_ = 0;
  std::string where_ = "the pass";
};

// A stream that another reads; null once it has ended.
template <class T>
void save_source(PassWriter& w, const std::unique_ptr<PassStream<T>>& source) {
  w.put(source != nullptr);
  if (source) source->save(w);
}
// `source` has been opened; becomes null if it had ended.
template <class T>
void restore_source(PassReader& r, std::unique_ptr<PassStream<T>>* source) {
  if (!r.flag()) {
    source->reset();
  } else if (*source) {
    (*source)->restore(r);
  } else {
    r.damaged("it reads on where nothing is left");
  }
}

// Values that a stream holds back. Row numbers are checked against `node`'s.
void save_values(PassWriter& w, const std::vector<Tensors>& values);
void save_values(PassWriter& w, const std::vector<int64_t>& values);
void restore_values(PassReader& r, const Node& node,
                    std::vector<Tensors>* values);
void restore_values(PassReader& r, const Node& node,
                    std::vector<int64_t>* values);

// A PassWriter or a PassReader: what a stream knows, listed once for both.
class PassState {
 public:
  explicit PassState(PassWriter& w) : w_(&w) {}
  explicit PassState(PassReader& r) : r_(&r) {}
  bool restoring() const { return r_ != nullptr; }
  PassReader& reader() { return *r_; }  // while restoring()

  void begin(const Node& node) { w_ ? w_->begin(node) : r_->begin(node); }
  void operator()(int64_t& value, int64_t low = 0,
                  int64_t high = int64_t{1} << 62) {
    w_ ? w_->put(value) : void(value = r_->number(low, high));
  }
  void operator()(size_t& value, size_t high) {
    auto number = static_cast<int64_t>(value);
    (*this)(number, 0, static_cast<int64_t>(high));
    value = static_cast<size_t>(number);
  }
  void operator()(bool& value) {
    w_ ? w_->put(value) : void(value = r_->flag());
  }
  void operator()(Tensors& element) {
    w_ ? w_->put(element) : void(element = r_->element());
  }
  void operator()(std::vector<int64_t>& numbers) {
    w_ ? w_->put(numbers) : void(numbers = r_->numbers());
  }
  void any(int64_t& value) { w_ ? w_->put(value) : void(value = r_->number()); }
  void any(uint64_t& value) { w_ ? w_->put(value) : void(value = r_->word()); }
  void operator()(NodeMemory& memory) {
    any(memory.passes);
    any(memory.seed);
  }
  // A stream that is read; until_end(): null once it has ended.
  template <class T>
  void operator()(const std::unique_ptr<PassStream<T>>& source) {
    w_ ? source->save(*w_) : source->restore(*r_);
  }
  template <class T>
  void until_end(std::unique_ptr<PassStream<T>>& source) {
    w_ ? save_source(*w_, source) : restore_source(*r_, &source);
  }
  // Values that the stream holds back; row numbers are checked against
  // `node`'s.
  template <class T>
  void values(const Node& node, std::vector<T>& values) {
    w_ ? save_values(*w_, values) : restore_values(*r_, node, &values);
  }

 private:
  PassWriter* w_ = nullptr;
  PassReader* r_ = nullptr;
};

// A stream of To, of a Transform of class N, that reads the one before it.
template <class N, class T = Tensors, class To = T>
class TransformStream : public PassStream<To> {
 public:
  TransformStream(const N& node, const PassInfo& pass)
      : node_(node),
        source_(data::open<T>(node.parent(), pass)),
        stop_(pass.stop) {}
  void state(PassState& s) override {
    s.begin(node_);
    s(number_);
    s(source_);
  }

 protected:
  const N& node_;
  std::unique_ptr<PassStream<T>> source_;
  std::stop_token stop_;
  int64_t number_ = 0;  // of the next element
};

}  // namespace berth::data

#endif  // BERTH_DATA_PASS_STATE_H_
