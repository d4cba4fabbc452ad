// Rows: many short lists in one array.
//
// Lists of dense numbers that are built once and read often: the simulator and
// searches walk them without following a pointer per list. A value.

#ifndef BERTH_PLACE_ROWS_H_
#define BERTH_PLACE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth {

// Sorts a list and drops duplicates.
template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

template <class T>
class Rows {
 public:
  Rows() = default;
  explicit Rows(const std::vector<std::vector<T>>& lists) {
    for (const std::vector<T>& list : lists) add(list);
  }
  // Appends a row.
  void add(std::span<const T> row) {
    items_.insert(items_.end(), row.begin(), row.end());
    begin_.push_back(static_cast<int32_t>(items_.size()));
  }
  int32_t size() const { return static_cast<int32_t>(begin_.size()) - 1; }
  // The number of items before row `i`: the dense index of its first item.
  int32_t begin_of(int32_t i) const { return begin_[static_cast<size_t>(i)]; }
  int32_t num_items() const { return begin_.back(); }
  // An item of any row, by its dense index.
  const T& item(int32_t number) const {
    return items_[static_cast<size_t>(number)];
  }
  std::span<const T> operator[](int32_t i) const {
    const size_t at = static_cast<size_t>(i);
    return {items_.data() + begin_[at],
            static_cast<size_t>(begin_[at + 1] - begin_[at])};
  }
  std::span<T> operator[](int32_t i) {
    const size_t at = static_cast<size_t>(i);
    return {items_.data() + begin_[at],
            static_cast<size_t>(begin_[at + 1] - begin_[at])};
  }

 private:
  std::vector<int32_t> begin_ = {0};
  std::vector<T> items_;
};

}  // namespace berth

#endif  // BERTH_PLACE_ROWS_H_
