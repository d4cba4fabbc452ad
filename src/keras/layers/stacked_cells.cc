// Cells on top of each other.

#include "keras/config/classes.h"
#include "keras/layers/recurrent_cells.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

StackedCells::StackedCells(std::vector<Layer> cells, const NameOptions& options,
                           Site site)
    : RNNCellBase("StackedRNNCells", options.name, site),
      cells_(std::move(cells)) {
  if (cells_.empty()) {
    fail("StackedRNNCells: there are no cells; expected at least one");
  }
  for (const Layer& cell : cells_) {
    cell_of(cell, *this);
    track(cell);
  }
}

void StackedCells::build(const std::vector<Shape>& inputs) {
  Shape shape = inputs[0];
  for (const Layer& cell : cells_) {
    build_cell(cell, shape);
    shape = {shape[0], cell_of(cell, *this).output_size()};
  }
}

std::vector<int64_t> StackedCells::state_size() const {
  std::vector<int64_t> sizes;
  for (const Layer& cell : cells_) {
    for (const int64_t size : cell_of(cell, *this).state_size()) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

size_t StackedCells::last_cells_state() const {
  return state_size().size() -
         cell_of(cells_.back(), *this).state_size().size();
}

int64_t StackedCells::output_size() const {
  return cell_of(cells_.back(), *this).output_size();
}

Tensors StackedCells::get_initial_state(const Tensor& batch) const {
  Tensors all;
  for (const Layer& cell : cells_) {
    for (const Tensor& t : cell_of(cell, *this).get_initial_state(batch)) {
      all.push_back(t);
    }
  }
  return all;
}

Tensors StackedCells::get_constants(const Tensor& batch, bool training) const {
  Tensors all;
  for (const Layer& cell : cells_) {
    for (const Tensor& t :
         cell_of(cell, *this).get_constants(batch, training)) {
      all.push_back(t);
    }
  }
  return all;
}

size_t StackedCells::num_constants(bool training) const {
  size_t count = 0;
  for (const Layer& cell : cells_) {
    count += cell_of(cell, *this).num_constants(training);
  }
  return count;
}

Tensors StackedCells::call(const Tensors& inputs, bool training) {
  const size_t num_states = state_size().size();
  if (inputs.size() < 1 + num_states) {
    fail_in(state(), "StackedRNNCells: got {} inputs; expected x and {} states",
            inputs.size(), num_states);
  }
  const bool has_constants =
      inputs.size() == 1 + num_states + num_constants(training);
  auto state = inputs.begin() + 1;
  auto constant = state + static_cast<ptrdiff_t>(num_states);
  Tensor x = inputs[0];
  Tensors out{x};
  for (const Layer& cell : cells_) {
    const RNNCellBase& base = cell_of(cell, *this);
    const auto count = static_cast<ptrdiff_t>(base.state_size().size());
    Tensors in{x};
    in.insert(in.end(), state, state + count);
    state += count;
    if (has_constants) {
      const auto own = static_cast<ptrdiff_t>(base.num_constants(training));
      in.insert(in.end(), constant, constant + own);
      constant += own;
    }
    const Tensors y = cell(in, training);
    x = y[0];
    out.insert(out.end(), y.begin() + 1, y.end());
  }
  out[0] = x;
  return out;
}

namespace {

void stacked_fields(Fields& f, std::vector<Layer>& cells, NameOptions&) {
  f.must("cells", cells);
}

}  // namespace

StackedRNNCells::StackedRNNCells(std::vector<Layer> cells, NameOptions options,
                                 Site site)
    : Layer(described<StackedCells, stacked_fields>(site, std::move(cells),
                                                    options)) {}

void add_stacked_classes(Classes& c) {
  c.layers["StackedRNNCells"] = &layer_of<StackedRNNCells, stacked_fields>;
}

}  // namespace berth::keras
