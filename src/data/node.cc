#include "data/node.h"

#include <new>

#include "base/where.h"
#include "data/every_nth.h"
#include "data/stage_times.h"

namespace berth::data {

namespace {

// Builds the rows of an indexed node one by one.
class RowStream : public ElementStream {
 public:
  RowStream(const RowSource* rows, std::unique_ptr<IndexStream> indices)
      : rows_(rows), indices_(std::move(indices)) {}
  bool next(Tensors* out) override {
    int64_t index = 0;
    if (!indices_->next(&index)) return false;
    rows_->row(index, out);
    return true;
  }
  void save(PassWriter& w) override { indices_->save(w); }
  void restore(PassReader& r) override { indices_->restore(r); }

 private:
  const RowSource* rows_;
  std::unique_ptr<IndexStream> indices_;
};

}  // namespace

void cannot_save() {
  throw errors::Unimplemented(
      "where this pass stands cannot be saved: one of its transforms does not "
      "say where it is");
}

std::unique_ptr<IndexStream> Node::indices(const PassInfo&) const {
  throw errors::Internal(where() + " has no row numbers");
}

std::unique_ptr<ElementStream> Node::elements(const PassInfo&) const {
  throw errors::Internal(where() + " has no elements");
}

std::unique_ptr<ElementStream> Node::open(const PassInfo& pass) const {
  return pass.peek ? open_untimed(pass) : timed(*this, open_untimed(pass));
}

std::unique_ptr<ElementStream> Node::open_untimed(const PassInfo& pass) const {
  if (rows() != nullptr) {
    return std::make_unique<RowStream>(rows(),
                                       data::open<int64_t>(*this, pass));
  }
  // Readers of files skip those of other tasks themselves.
  if (pass.shard.files != this || num_files().has_value()) {
    return elements(pass);
  }
  return std::make_unique<EveryNth<Tensors>>(elements(pass), pass.shard.tasks,
                                             pass.shard.index, pass.stop);
}

template <>
std::unique_ptr<IndexStream> open(const Node& node, const PassInfo& pass) {
  if (pass.shard.files != &node) return node.indices(pass);
  return std::make_unique<EveryNth<int64_t>>(
      node.indices(pass), pass.shard.tasks, pass.shard.index, pass.stop);
}

std::string Node::where() const { return call_text(what_, site_); }

void refuse(const std::string& where, const std::string& problem) {
  throw errors::InvalidArgument(where + ": " + problem);
}

PassError PassError::current() {
  try {
    throw;
  } catch (const errors::Error& e) {
    return {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    return {errors::Code::kResourceExhausted, "the host is out of memory"};
  } catch (const std::exception& e) {
    return {errors::Code::kUnknown, e.what()};
  } catch (...) {
    return {errors::Code::kUnknown,
            "an exception that is no std::exception was thrown"};
  }
}

}  // namespace berth::data
