#include <gtest/gtest.h>

#include <fstream>

#include "berth/data_files.h"
#include "berth/ops/array.h"
#include "data/testing.h"
#include "io/temp_dir_testing.h"
#include "tensor/string_tensor.h"

namespace berth::io {
namespace {

using data::CsvColumn;
using data::CsvDataset;
using data::Dataset;
using testing::TempDir;
using testing::write_file;

template <class T>
std::vector<T> column(const Dataset& d, size_t c) {
  std::vector<T> all;
  for (const Tensors& e : d) {
    if constexpr (std::is_same_v<T, std::string>) {
      for (const std::string& s : strings_of(e[c])) all.push_back(s);
    } else {
      for (T v : e[c].to_vector<T>()) all.push_back(v);
    }
  }
  return all;
}

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Words = std::vector<std::string>;

TEST(CsvDataset, ReadsColumnsOfEveryType) {
  const TempDir dir;
  write_file(dir / "f",
             "1,2.5,abc,9000000000,1e-3,7,true\n"
             "-2,-inf,,-1,2,+8,0\r\n"
             " 3 ,1e60, x y ,0, 4 ,255,1");
  const CsvDataset d(dir / "f", {int32, float32, constant("none"), int64,
                                 float64, uint8, bool_});
  for (const Dataset& rows : {Dataset(d), d.batch(2), d.batch(8)}) {
    EXPECT_EQ(column<int>(rows, 0), (std::vector<int>{1, -2, 3}));
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(column<float>(rows, 1), (Floats{2.5f, -inf, inf}));
    EXPECT_EQ(column<std::string>(rows, 2), (Words{"abc", "none", " x y "}));
    EXPECT_EQ(column<int64_t>(rows, 3), (Ints{9000000000, -1, 0}));
    EXPECT_EQ(column<double>(rows, 4), (std::vector<double>{1e-3, 2, 4}));
    EXPECT_EQ(column<int>(rows, 5), (std::vector<int>{7, 8, 255}));
    EXPECT_EQ(column<int>(rows, 6), (std::vector<int>{1, 0, 1}));
  }
  EXPECT_EQ(d.element_spec()[0].str(), "int32[]");
}

TEST(CsvDataset, FollowsRfc4180) {
  const TempDir dir;
  write_file(dir / "f",
             "\xef\xbb\xbfh1,h2\n"
             "\"a,b\",\"1\"\n"
             "\"say \"\"hi\"\"\",2\r\n"
             "\n"
             "\"two\nlines\",\"3\"\n"
             "\"\",4\n");
  const CsvDataset d(dir / "f", {constant("empty"), int32}, {.header = true});
  EXPECT_EQ(column<std::string>(d.batch(3), 0),
            (Words{"a,b", "say \"hi\"", "two\nlines", "empty"}));
  EXPECT_EQ(column<int>(d, 1), (std::vector<int>{1, 2, 3, 4}));
  const CsvDataset plain(dir / "f", {string_},
                         {.use_quote_delim = false, .select_cols = {0}});
  EXPECT_EQ(column<std::string>(plain.take(3), 0),
            (Words{"h1", "\"a", "\"say \"\"hi\"\"\""}));
}

TEST(CsvDataset, SelectsAndExcludesColumns) {
  const TempDir dir;
  write_file(dir / "f", "1,x,3,4\n5,y,7,8\n");
  EXPECT_EQ(
      column<int>(CsvDataset(dir / "f", {int32}, {.select_cols = {2}}), 0),
      (std::vector<int>{3, 7}));
  const CsvDataset rest(dir / "f", {int32, int32, int32},
                        {.exclude_cols = {1}});
  EXPECT_EQ(column<int>(rest, 0), (std::vector<int>{1, 5}));
  EXPECT_EQ(column<int>(rest, 2), (std::vector<int>{4, 8}));
  const CsvDataset all_but_last(dir / "f", {int32, string_, int32},
                                {.exclude_cols = {3}});
  EXPECT_EQ(column<int>(all_but_last, 2), (std::vector<int>{3, 7}));
  EXPECT_THROW(CsvDataset(dir / "f", {int32}, {.select_cols = {0, 1}}),
               errors::InvalidArgument);
  EXPECT_THROW(CsvDataset(dir / "f", {int32}, {.exclude_cols = {2, 1}}),
               errors::InvalidArgument);
  EXPECT_THROW(CsvDataset(dir / "f", {complex64}), errors::InvalidArgument);
}

TEST(CsvDataset, UsesDefaultsForEmptyFieldsAndTheNaValue) {
  const TempDir dir;
  write_file(dir / "f", "1;NA\n;2\nNA;\n");
  const CsvDataset d(dir / "f", {constant(7), constant(0.5f)},
                     {.field_delim = ';', .na_value = "NA"});
  EXPECT_EQ(column<int>(d.batch(2), 0), (std::vector<int>{1, 7, 7}));
  EXPECT_EQ(column<float>(d.batch(2), 1), (Floats{0.5f, 2, 0.5f}));
  // One that looks like a number.
  write_file(dir / "g", "1\n-999\n");
  EXPECT_EQ(
      column<float>(
          CsvDataset(dir / "g", {constant(0.f)}, {.na_value = "-999"}), 0),
      (Floats{1, 0}));
}

TEST(CsvDataset, NamesLineAndColumnOfWhatIsWrong) {
  const TempDir dir;
  const auto problem = [&](const std::string& text) {
    write_file(dir / "f", text);
    return message_of<errors::InvalidArgument>([&] {
      column<int>(CsvDataset(dir / "f", {int32, constant(0)}).batch(2), 0);
    });
  };
  const std::string number = problem("1,2\n3,4\n5,six\n");
  EXPECT_TRUE(says(number, "line 3: column 1 is \"six\"; expected an int32"));
  EXPECT_TRUE(says(number, "CsvDataset ("));
  EXPECT_TRUE(says(number, "csv_dataset_test.cc:"));
  EXPECT_TRUE(says(problem("1,2\n,4\n"), "line 2: column 0 is empty"));
  EXPECT_TRUE(says(problem("1,2\n3\n"), "line 2: column 1 is missing"));
  EXPECT_TRUE(says(problem("1,2,3\n"), "column 2 is one too many"));
  EXPECT_TRUE(says(problem("1,3000000000\n"), "3000000000"));
  EXPECT_TRUE(says(problem("1,\"2"), "ends within quotes"));
  EXPECT_TRUE(says(problem("1,\"2\"3\n"), "follows a closing quote"));
  EXPECT_TRUE(says(problem("\"1\",\"\n\n\"\n3,x\n"), "line 1: column 1"));
  EXPECT_TRUE(says(problem("1,2\n\n\n3,x\n"), "line 4: column 1"));
}

// Rows longer and shorter than the windows, against the numbers they were
// written from.
TEST(CsvDataset, ReadsFilesOfManyWindows) {
  const TempDir dir;
  std::ofstream out(dir / "f");
  out.precision(9);
  Words words;
  Floats numbers;
  for (int i = 0; i < 20000; ++i) {
    words.push_back(std::string(static_cast<size_t>(1 + i % 61), 'q') +
                    (i % 5 == 0 ? "\"," : "") + (i % 7 == 0 ? "\r\n" : ""));
    numbers.push_back(static_cast<float>(i) / 64.0f);
    std::string quoted;
    for (char c : words.back()) quoted += c == '"' ? "\"\"" : std::string{c};
    out << numbers.back() << ",\"" << quoted << "\"," << i
        << (i % 3 == 0 ? "\r\n" : "\n");
    if (i == 9000) {
      words.push_back(std::string(900000, 'z'));
      numbers.push_back(-1);
      out << "-1," << words.back() << ",9000\n";
    }
  }
  out.close();
  const CsvDataset d(dir / "f", {float32, string_, int64});
  EXPECT_EQ(column<float>(d.batch(97), 0), numbers);
  EXPECT_EQ(column<std::string>(d.batch(97), 1), words);
  EXPECT_EQ(column<int64_t>(d.batch(97), 2).size(), words.size());
  EXPECT_THROW(column<float>(CsvDataset(dir / "f", {float32, string_, int64},
                                        {.max_record_bytes = 1000}),
                             0),
               errors::ResourceExhausted);
}

TEST(CsvDataset, OfOneColumnKeepsBlankLines) {
  const TempDir dir;
  write_file(dir / "f", "1\n\n3\n");
  EXPECT_EQ(column<int>(CsvDataset(dir / "f", {constant(-1)}), 0),
            (std::vector<int>{1, -1, 3}));
}

TEST(MakeCsvDataset, FindsNamesAndTypes) {
  const TempDir dir;
  write_file(dir / "a.csv",
             "id,big,price,word,far,none\n"
             "1,1,2,a,1,\n2,9000000000,2.5,,1e300,\n");
  write_file(dir / "b.csv", "id,big,price,word,far,none\n3,3,,c,1,\n");
  const data::CsvBatches d = data::make_csv_dataset(
      {dir / "*.csv"}, 2,
      {.label_name = "id", .num_epochs = 1, .shuffle = false});
  EXPECT_EQ(d.names, (Words{"big", "price", "word", "far", "none", "id"}));
  const auto& specs = d.dataset.element_spec();
  EXPECT_EQ(specs[0].dtype, int64);
  EXPECT_EQ(specs[1].dtype, float32);
  EXPECT_EQ(specs[2].dtype, string_);
  EXPECT_EQ(specs[3].dtype, float64);
  EXPECT_EQ(specs[4].dtype, string_);
  EXPECT_EQ(specs[5].dtype, int32);
  EXPECT_EQ(column<int64_t>(d.dataset, 0), (Ints{1, 9000000000, 3}));
  EXPECT_EQ(column<float>(d.dataset, 1), (Floats{2, 2.5f, 0}));
  EXPECT_EQ(column<int>(d.dataset, 5), (std::vector<int>{1, 2, 3}));
}

TEST(MakeCsvDataset, ElementsHaveTheNamesOfTheColumns) {
  const TempDir dir;
  write_file(dir / "a.csv", "age,sold,price\n1,0,2.5\n2,1,3.5\n");
  write_file(dir / "b.csv", "age,sold,price\n3,1,4.5\n4,0,5.5\n");
  const data::MakeCsvOptions options{
      .label_name = "sold", .num_epochs = 1, .shuffle = false};
  const data::CsvBatches d =
      data::make_csv_dataset({dir / "*.csv"}, 4, options);
  EXPECT_EQ(d.dataset.component_names(), d.names);
  int batches = 0;
  for (const data::Element& e : d.dataset) {
    ++batches;
    EXPECT_EQ(e["age"].to_vector<int>(), (std::vector<int>{1, 2, 3, 4}));
    EXPECT_EQ(e["sold"].to_vector<int>(), (std::vector<int>{0, 1, 1, 0}));
    EXPECT_EQ(e.names().back(), "sold");
  }
  EXPECT_EQ(batches, 1);
  data::MakeCsvOptions both = options;
  both.num_parallel_reads = 2;
  for (const data::Element& e :
       data::make_csv_dataset({dir / "*.csv"}, 4, both).dataset) {
    EXPECT_EQ(e["age"].to_vector<int>(), (std::vector<int>{1, 3, 2, 4}));
  }
}

TEST(MakeCsvDataset, ShufflesRepeatsAndSelects) {
  const TempDir dir;
  write_file(dir / "f", "a,b\n1,2\n3,4\n5,6\n");
  const data::CsvBatches d = data::make_csv_dataset(
      {dir / "f"}, 3,
      {.select_columns = {"b"}, .num_epochs = 2, .shuffle_seed = 1});
  std::vector<int> b = column<int>(d.dataset, 0);
  std::sort(b.begin(), b.end());
  EXPECT_EQ(b, (std::vector<int>{2, 2, 4, 4, 6, 6}));
  const auto make = [&](const data::MakeCsvOptions& o) {
    return message_of<errors::InvalidArgument>(
        [&] { data::make_csv_dataset({dir / "f"}, 1, o); });
  };
  EXPECT_TRUE(says(make({.label_name = "c"}), "expected one of a, b"));
  EXPECT_TRUE(says(make({.select_columns = {"c"}}), "expected one of a, b"));
  EXPECT_TRUE(says(make({.column_names = {"x"}}), "2 columns (a, b)"));
}

}  // namespace
}  // namespace berth::io
