#include "io/npz.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/thrown.h"
#include "berth/errors.h"
#include "io/testing/npz_file.h"

namespace berth::io {
namespace {

using testing::from_hex;
using testing::little;
using testing::npy;
using testing::npz;
using Lists = std::vector<std::vector<int64_t>>;

const Lists kLists{{1, 2, 300}, {70000, -5}, {}};

TEST(Npz, ReadsArraysStoredAndDeflated) {
  const std::string numbers = little(7, 8) + little(~uint64_t{0}, 8);
  for (bool deflated : {false, true}) {
    const auto all =
        read_npz(npz({{"a", npy("'<i8'", "(2,)", numbers)},
                      {"b", npy("'<f4'", "(2, 1)", std::string(8, '\0'))},
                      {"c", npy("'|O'", "(3,)", from_hex(testing::kPickle3))}},
                     deflated));
    EXPECT_EQ(all.size(), 3u);
    EXPECT_EQ(all.at("a").dtype, int64);
    EXPECT_EQ(all.at("a").bytes, numbers);
    EXPECT_EQ(all.at("b").shape, (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(all.at("c").lists, kLists);
  }
}

TEST(Npz, ReadsListsOfEveryProtocol) {
  EXPECT_EQ(read_pickled_lists(from_hex(testing::kPickle2)), kLists);
  EXPECT_EQ(read_pickled_lists(from_hex(testing::kPickle3)), kLists);
  EXPECT_EQ(read_pickled_lists(from_hex(testing::kPickle4)), kLists);
}

TEST(Npz, RunsNothingOfAPickle) {
  // cos\nsystem\n(S'true'\ntR.
  const std::string call = "cos\nsystem\n(X\4\0\0\0truetR.";
  EXPECT_TRUE(says(
      message_of<errors::InvalidArgument>([&] { read_pickled_lists(call); }),
      "the name os.system"));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [&] { read_pickled_lists("\x80\x02}q\0."); }),
                   "operation 0x7d"));
  EXPECT_THROW(read_pickled_lists("K\1."), errors::InvalidArgument);
}

TEST(Npz, RefusesEveryCutAndSurvivesEveryChange) {
  const std::string pickle = from_hex(testing::kPickle4);
  for (size_t n = 0; n < pickle.size(); ++n) {
    EXPECT_THROW(read_pickled_lists(pickle.substr(0, n)), errors::Error) << n;
  }
  const std::string file = npz({{"c", npy("'|O'", "(3,)", pickle)}}, true);
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_npz(file.substr(0, n)), errors::Error) << n;
  }
  for (size_t i = 0; i < pickle.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = pickle;
      changed[i] ^= static_cast<char>(1 << bit);
      try {
        read_pickled_lists(changed);
      } catch (const errors::Error& e) {
        EXPECT_NE(e.what()[0], 0);
      }
    }
  }
}

TEST(Npz, RefusesWhatItDoesNotRead) {
  const auto problem = [](const std::string& file) {
    return message_of<errors::Error>([&] { read_npz(file); });
  };
  EXPECT_TRUE(says(problem("text"), "no ZIP archive"));
  EXPECT_TRUE(says(problem(npz({{"a", "text"}})), "does not begin as NumPy's"));
  EXPECT_TRUE(says(problem(npz({{"a", npy("'>i8'", "(1,)", "12345678")}})),
                   "expected little-endian"));
  EXPECT_TRUE(says(problem(npz({{"a", npy("'<i8'", "(2,)", "12345678")}})),
                   "has 8 bytes; expected 16"));
  EXPECT_TRUE(says(problem(npz({{"a", npy("'<i8'", "(9999999999999,9999999)",
                                          "12345678")}})),
                   "too large"));
  std::string wrong = npz({{"a", npy("'<i8'", "(1,)", "12345678")}});
  wrong[wrong.find("12345678")] = '0';
  EXPECT_TRUE(says(problem(wrong), "checksum"));
  EXPECT_THROW(read_npz(npz({{"a", npy("'<i8'", "(1,)", "12345678")}}),
                        {.max_bytes = 10}),
               errors::ResourceExhausted);
}

}  // namespace
}  // namespace berth::io
