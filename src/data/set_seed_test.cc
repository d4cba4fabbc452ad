// random::set_seed() covers every transform that draws: equal seeds give equal
// datasets, other seeds others, and two datasets of one program differ.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "berth/data_files.h"
#include "berth/data_row.h"
#include "berth/ops/random.h"
#include "data/testing.h"

namespace berth::data {
namespace {

// What the components of all elements are, of at most `most` elements.
std::string drawn_contents(const Dataset& dataset, int64_t most = 200) {
  std::string all;
  for (const Tensors& element : dataset.take(most)) {
    for (const Tensor& t : element) all += t.str();
  }
  return all;
}

struct RandomDataset {
  const char* name;
  std::function<Dataset()> make;
};

std::vector<std::string> files_to_shuffle(const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < 40; ++i) {
    std::ofstream(folder + "/" + std::to_string(i) + ".csv") << "a,b\n"
                                                             << i << ",2\n";
  }
  return {folder + "/*.csv"};
}

std::vector<RandomDataset> datasets_that_draw(
    const std::vector<std::string>& files) {
  const auto drawn = [](const RowIn&, RowOut& out, RowRandom& random) {
    out.get<float>(0)[0] = static_cast<float>(random.uniform());
  };
  const auto odd = [](const Tensors& e) { return e[0].item<int64_t>() % 2; };
  return {
      {"shuffle", [] { return Dataset::range(100).shuffle(100); }},
      {"map",
       [] {
         return Dataset::range(100).map(
             [](const Tensors&) { return Tensors{random::uniform({2})}; });
       }},
      {"map_rows",
       [=] {
         return Dataset::range(100).map_rows(drawn, {{Shape{1}, float32}});
       }},
      {"sample_from_datasets",
       [] {
         return Dataset::sample_from_datasets(
             {Dataset::range(100), Dataset::range(100, 200)});
       }},
      {"rejection_resample",
       [=] {
         return Dataset::range(400).rejection_resample(odd, {0.9, 0.1});
       }},
      {"random", [] { return Dataset::random(); }},
      {"list_files", [=] { return list_files(files); }},
      {"make_csv_dataset",
       [=] {
         return make_csv_dataset(files, 1, {.num_epochs = 1})
             .dataset.enumerate();
       }},
  };
}

TEST(SetSeed, CoversEveryTransformThatDraws) {
  const std::string folder = ::testing::TempDir() + "set_seed_test";
  for (const RandomDataset& r : datasets_that_draw(files_to_shuffle(folder))) {
    const auto two = [&](int64_t seed) {
      random::set_seed(seed);
      const std::string first = drawn_contents(r.make());
      return std::pair(first, drawn_contents(r.make()));
    };
    const auto a = two(3);
    EXPECT_FALSE(a.first.empty()) << r.name;
    EXPECT_TRUE(a == two(3)) << r.name;
    EXPECT_TRUE(a != two(4)) << r.name;
    // Numbers of a map follow from the place of the element alone.
    if (r.name == std::string("map")) continue;
    EXPECT_TRUE(a.first != a.second) << r.name;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::data
