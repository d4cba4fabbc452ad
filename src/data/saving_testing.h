// What tests of transforms share: a pass that is saved and restored at every
// position is the uninterrupted one.

#ifndef BERTH_DATA_SAVING_TESTING_H_
#define BERTH_DATA_SAVING_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "data/testing.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

// Equal dtypes, shapes and bits.
inline bool same_bits(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype() || a[i].shape() != b[i].shape()) {
      return false;
    }
    if (a[i].dtype() == string_) {
      if (strings_of(a[i]) != strings_of(b[i])) return false;
      continue;
    }
    const size_t bytes = a[i].impl()->size_bytes();
    std::string x(bytes, 0), y(bytes, 0);
    a[i].copy_to(x.data());
    b[i].copy_to(y.data());
    if (x != y) return false;
  }
  return true;
}

inline std::vector<Tensors> rest_of(Iterator& it, size_t most = SIZE_MAX) {
  std::vector<Tensors> all;
  while (all.size() < most) {
    auto element = it.next();
    if (!element) break;
    all.push_back(*std::move(element));
  }
  return all;
}

inline void expect_same(const std::vector<Tensors>& a,
                        const std::vector<Tensors>& b,
                        const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same_bits(a[i], b[i])) << what << ", element " << i;
  }
}

// Saves a pass of make() at each position and lets a pass of another make()
// go on from there: the rest, and the iteration after it, must be those of
// the pass that was saved; and these, with `seeded`, those of a pass that was
// never saved. Reads at most `most` elements of what may be without end.
inline void expect_restores(const std::function<Dataset()>& make,
                            bool seeded = true, size_t most = 60) {
  std::vector<Tensors> all;
  {
    auto it = make().make_iterator();
    all = rest_of(it, most);
  }
  for (size_t at = 0; at <= all.size(); ++at) {
    const std::string where = "saved at " + std::to_string(at);
    const Dataset first = make(), second = make();
    auto it = first.make_iterator();
    std::vector<Tensors> read = rest_of(it, at);
    const IteratorState state = it.save();
    const auto rest = rest_of(it, most - at);
    auto other = second.make_iterator();
    rest_of(other, at % 3);
    other.restore(state);
    expect_same(rest_of(other, most - at), rest, where);
    auto after = first.make_iterator(), other_after = second.make_iterator();
    expect_same(rest_of(other_after, 5), rest_of(after, 5),
                where + ", next iteration");
    read.insert(read.end(), rest.begin(), rest.end());
    if (seeded) expect_same(read, all, where + ", as a whole");
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace berth::data

#endif  // BERTH_DATA_SAVING_TESTING_H_
