// Flattened: the elements of datasets that are made while a pass runs.
//
// A DatasetStream makes the datasets, one after the other; it can make the last
// one again from what it saved, so that a pass goes on in the middle of one.
// One thread.

#ifndef BERTH_DATA_FLATTEN_H_
#define BERTH_DATA_FLATTEN_H_

#include <memory>
#include <optional>

#include "data/component_names.h"
#include "data/pass_state.h"

namespace berth::data {

class DatasetStream {
 public:
  virtual ~DatasetStream() = default;
  // Makes the next dataset; none at the end and after a stop.
  virtual std::optional<Dataset> next() = 0;
  // save() is told whether the last dataset is still being read; restore()
  // then returns it, made again.
  virtual void save(PassWriter& w, bool reading) = 0;
  virtual std::optional<Dataset> restore(PassReader& r, bool reading) = 0;
};

// A node whose elements are those of datasets it makes.
class FlattenNode : public Transform {
 public:
  using Transform::Transform;
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const final;
  // Those of the first dataset.
  const std::vector<TensorSpec>& specs() const final;
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }
  NamesRef names() const final {
    return names_.get([&] { specs(); });
  }
  void learn(const Dataset& made) const { names_.learn(made); }
  virtual std::unique_ptr<DatasetStream> datasets(
      const PassInfo& pass) const = 0;

 private:
  LazySpecs specs_;
  LearntNames names_;
};

// Elements that were collected: a window of a dataset with specs `like`.
Dataset collected(const char* what, Site site, std::vector<Tensors> elements,
                  std::vector<TensorSpec> like, NamesRef names = nullptr);

}  // namespace berth::data

#endif  // BERTH_DATA_FLATTEN_H_
