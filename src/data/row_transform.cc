#include "data/row_transform.h"

#include <fmt/format.h>

#include <atomic>

#include "data/host_budget.h"

namespace berth::data {

namespace {

class RowMapNode;

// Rows that are computed when they are asked for.
class MappedRows : public RowSource {
 public:
  MappedRows(const RowMapNode& node, const RowSource& from)
      : node_(node), from_(from), mapped_(from.maps()) {}
  int64_t count() const override { return from_.count(); }
  bool holds(int64_t) const override { return count() > 0; }
  bool maps() const override { return true; }
  const std::vector<TensorSpec>& specs() const override;
  void row(int64_t index, Tensors* out) const override;
  void gather(std::span<const int64_t> indices, Tensors* out) const override;

 private:
  const RowMapNode& node_;
  // What `from` calls the row.
  int64_t row_of(int64_t index) const {
    return mapped_ ? index : index % count();
  }
  const RowSource& from_;
  bool mapped_;  // `from` numbers the elements already
};

class RowMapNode : public Transform {
 public:
  RowMapNode(const char* what, const Dataset& parent,
             std::shared_ptr<const RowKernel> kernel, Site site)
      : Transform(what, site, parent), kernel_(std::move(kernel)) {
    const RowSource* from = this->parent().rows();
    if (from == nullptr) return;
    rows_ = std::make_unique<MappedRows>(*this, *from);
  }
  const RowSource* rows() const override { return rows_.get(); }
  std::unique_ptr<IndexStream> indices(const PassInfo& pass) const override;
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  const std::vector<TensorSpec>& specs() const override {
    return kernel_->specs(*this);
  }
  NamesRef names() const override { return kernel_->names(*this); }
  const RowKernel& kernel() const { return *kernel_; }

  // The number of the first element of a pass.
  int64_t begin(const PassInfo& pass) const {
    const int64_t number = pass.peek ? passes_.load() : passes_.fetch_add(1);
    const int64_t n = parent().cardinality();
    return number * (n > 0 ? n : int64_t{1} << 36);
  }
  NodeMemory memory() const override { return {passes_.load(), 0}; }
  void set_memory(const NodeMemory& m) const override { passes_ = m.passes; }

 private:
  std::shared_ptr<const RowKernel> kernel_;
  std::unique_ptr<const MappedRows> rows_;
  mutable std::atomic<int64_t> passes_{0};
};

const std::vector<TensorSpec>& MappedRows::specs() const {
  return node_.specs();
}

void MappedRows::gather(std::span<const int64_t> indices, Tensors* out) const {
  std::vector<int64_t> rows, elements;
  rows.reserve(indices.size());
  elements.reserve(indices.size());
  for (const int64_t index : indices) {
    rows.push_back(row_of(index));
    elements.push_back(index / count());
  }
  const int64_t since = stage_clock_ns();
  node_.kernel().run(node_, from_, rows, elements, out);
  node_.times().ns += stage_clock_ns() - since;
  node_.times().elements += static_cast<int64_t>(indices.size());
}

void MappedRows::row(int64_t index, Tensors* out) const {
  Tensors from;
  from_.row(row_of(index), &from);
  node_.kernel().run(node_, from, index / count(), out);
}

// Puts the number of the element on top of that of its row.
class RowMapIndices : public TransformStream<RowMapNode, int64_t> {
 public:
  RowMapIndices(const RowMapNode& node, const PassInfo& pass)
      : TransformStream(node, pass), count_(node.rows()->count()) {
    number_ = node.begin(pass);
  }
  bool next(int64_t* out) override {
    int64_t row = 0;
    if (!source_->next(&row)) return false;
    if (__builtin_mul_overflow(number_, count_, out) ||
        __builtin_add_overflow(*out, row, out)) {
      throw errors::OutOfRange(fmt::format(
          "{}: element {} of {} rows: the numbers of elements of all "
          "iterations have been used up; make the dataset again",
          node_.where(), number_, count_));
    }
    ++number_;
    return true;
  }

 private:
  int64_t count_;
};

// Elements that are not rows, one by one.
class RowMapStream : public TransformStream<RowMapNode> {
 public:
  RowMapStream(const RowMapNode& node, const PassInfo& pass)
      : TransformStream(node, pass) {
    number_ = node.begin(pass);
  }
  bool next(Tensors* out) override {
    if (!source_->next(&element_)) return false;
    node_.kernel().run(node_, element_, number_++, out);
    return true;
  }

 private:
  Tensors element_;
};

std::unique_ptr<IndexStream> RowMapNode::indices(const PassInfo& pass) const {
  if (parent().rows()->maps()) return parent().indices(pass);
  return std::make_unique<RowMapIndices>(*this, pass);
}

std::unique_ptr<ElementStream> RowMapNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<RowMapStream>(*this, pass);
}

}  // namespace

Dataset row_map(const char* what, const Dataset& parent,
                std::shared_ptr<const RowKernel> kernel, Site site) {
  return make_dataset<RowMapNode>(what, parent, std::move(kernel), site);
}

}  // namespace berth::data
