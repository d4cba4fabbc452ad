#include "io/npz.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/errors_testing.h"
#include "berth/errors.h"
#include "io/npz_file_testing.h"

namespace berth::io {
namespace {

using testing::little;
using testing::npy;
using testing::npz;

TEST(Npz, ReadsArraysStoredAndDeflated) {
  const std::string numbers = little(7, 8) + little(~uint64_t{0}, 8);
  for (bool deflated : {false, true}) {
    const auto all =
        read_npz(npz({{"a", npy("'<i8'", "(2,)", numbers)},
                      {"b", npy("'<f4'", "(2, 1)", std::string(8, '\0'))}},
                     deflated));
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all.at("a").dtype, int64);
    EXPECT_EQ(all.at("a").bytes, numbers);
    EXPECT_EQ(all.at("b").shape, (std::vector<int64_t>{2, 1}));
  }
}

TEST(Npz, RefusesEveryCut) {
  const std::string file =
      npz({{"c", npy("'<i8'", "(3,)", std::string(24, 'x'))}}, true);
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_npz(file.substr(0, n)), errors::Error) << n;
  }
}

// A pickle is a program; this one would call os.system.
TEST(Npz, NamesTheToolForPythonObjects) {
  const std::string call = "cos\nsystem\n(X\4\0\0\0truetR.";
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] {
                     read_npz(npz({{"x", npy("'|O'", "(1,)", call)}}));
                   }),
                   "tools/plain_npz"));
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
