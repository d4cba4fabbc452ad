#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "io/checksum.h"
#include "io/temp_dir_testing.h"
#include "tensor/string_tensor.h"

namespace berth::io {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

std::string bytes_of(const Tensor& t) {
  std::string bytes(static_cast<size_t>(t.num_elements()) * size_of(t.dtype()),
                    '\0');
  t.copy_to(bytes.data());
  return bytes;
}

template <class T>
Tensor numbers_of(std::vector<T> values, const Shape& shape) {
  return constant(std::span<const T>(values), shape);
}

std::string le64(uint64_t n) {
  std::string s(8, '\0');
  for (size_t i = 0; i < 8; ++i) s[i] = static_cast<char>(n >> (8 * i));
  return s;
}

std::string file_of(const std::string& json, const std::string& data) {
  return le64(json.size()) + json + data;
}

template <class E>
void expect_refused(const std::function<void()>& fn, const std::string& part) {
  try {
    fn();
    ADD_FAILURE() << "not refused; expected " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Checksum, IsTheOneOfRfc3720) {
  EXPECT_EQ(checksum("123456789", 9), 0xE3069283u);
  const std::string zeros(32, '\0'), ones(32, '\xFF');
  EXPECT_EQ(checksum(zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(checksum(ones.data(), 32), 0x62A8AB43u);
}

TEST(Checksum, OfPartsIsThatOfTheWholeAtAnyLengthAndPlace) {
  std::mt19937 random(7);
  std::string text(20000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  // Bit by bit, from the polynomial.
  const auto plain = [](const char* p, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; ++i) {
      crc ^= static_cast<uint8_t>(p[i]);
      for (int b = 0; b < 8; ++b) {
        crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
      }
    }
    return ~crc;
  };
  for (const size_t n :
       {0, 1, 7, 8, 1023, 1024, 1600, 4079, 4080, 4081, 8161, 19990}) {
    for (const size_t at : {0, 3}) {
      const size_t cut = n / 3;
      const uint32_t first = checksum(text.data() + at, cut);
      EXPECT_EQ(checksum(text.data() + at + cut, n - cut, first),
                plain(text.data() + at, n))
          << n << " at " << at;
      EXPECT_EQ(joined_checksum(
                    first, checksum(text.data() + at + cut, n - cut), n - cut),
                plain(text.data() + at, n))
          << n << " at " << at;
    }
  }
}

// Reads the file by the words of the format alone.
TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const TempDir dir;
  const Tensor a = numbers_of<float>({1, -2, 3.5f, 0, 5, 6}, {2, 3});
  const Tensor b = numbers_of<uint8_t>({1, 2, 3}, {3});
  const Tensor c = numbers_of<double>({0.1}, {});
  const Tensor d = numbers_of<int64_t>({}, {0, 4});
  write_safetensors(dir / "x.safetensors",
                    {{"a", a}, {"b", b}, {"c/d", c}, {"empty", d}},
                    {{"who", "me"}}, "test");
  const std::string file = read_file(dir / "x.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);  // little-endian machines
  EXPECT_EQ((8 + length) % 64, 0u);
  const auto json = nlohmann::json::parse(file.substr(8, length));
  EXPECT_EQ(json["__metadata__"]["who"], "me");
  const std::string data = file.substr(8 + length);
  const auto part = [&](const char* name) {
    const uint64_t begin = json[name]["data_offsets"][0];
    const uint64_t end = json[name]["data_offsets"][1];
    return data.substr(begin, end - begin);
  };
  EXPECT_EQ(json["a"]["dtype"], "F32");
  EXPECT_EQ(json["a"]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(part("a"), bytes_of(a));
  EXPECT_EQ(json["b"]["dtype"], "U8");
  EXPECT_EQ(part("b"), bytes_of(b));
  EXPECT_EQ(json["c/d"]["dtype"], "F64");
  EXPECT_EQ(json["c/d"]["shape"], nlohmann::json::array());
  EXPECT_EQ(part("c/d"), bytes_of(c));
  EXPECT_EQ(part("empty"), "");
  EXPECT_EQ(data.size(), 24u + 3 + 8);
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    const uint64_t width = entry["dtype"] == "U8"    ? 1
                           : entry["dtype"] == "F32" ? 4
                                                     : 8;
    EXPECT_EQ(entry["data_offsets"][0].get<uint64_t>() % width, 0u) << name;
  }
}

TEST(Safetensors, ReadsAFileMadeByHand) {
  const TempDir dir;
  const std::string json =
      R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},)"
      R"( "a":{"data_offsets":[0,8],"shape":[1,2],"dtype":"F32"},)"
      R"( "c":{"dtype":"BF16","shape":[],"data_offsets":[12,14]}}   )";
  const float a[] = {1.5f, -2};
  std::string data(reinterpret_cast<const char*>(a), 8);
  data += std::string("\1\0\2\0", 4) + std::string("\x80\x3f", 2);
  write_file(dir / "x.safetensors", file_of(json, data));
  const SafetensorsFile file(dir / "x.safetensors", "test");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensor(file.find("a")).to_vector<float>(),
            (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(file.tensors()[0].shape, Shape({1, 2}));
  EXPECT_EQ(file.tensor(file.find("c")).item<float>(), 1);
  EXPECT_EQ(file.find("d"), -1);
  EXPECT_EQ(file.tensor(file.find("b")).to_vector<int16_t>(),
            (std::vector<int16_t>{1, 2}));
}

TEST(Safetensors, EveryDtypeComesBackToTheBit) {
  const TempDir dir;
  std::vector<TensorToWrite> list;
  const auto add = [&](Tensor t) {
    list.push_back({std::string("x_") + name_of(t.dtype()), t});
  };
  add(numbers_of<float>({1, NAN, -0.f, INFINITY}, {2, 2}));
  add(numbers_of<double>({1e-310, 2}, {2}));
  add(numbers_of<int32_t>({-1, 7}, {2, 1}));
  add(numbers_of<int64_t>({INT64_MIN}, {}));
  add(numbers_of<uint8_t>({255}, {1}));
  add(numbers_of<int8_t>({-128, 127}, {2}));
  add(numbers_of<bfloat16_t>({bfloat16_t(3.f)}, {1}));
  add(numbers_of<float16_t>({float16_t(0.5f)}, {1}));
  add(numbers_of<std::complex<float>>({{1, 2}}, {1}));
  add(numbers_of<std::complex<double>>({{1, 2}, {3, 4}}, {1, 2}));
  list.push_back({"yes", numbers_of<float>({1, 0}, {2}) > 0.5});
  const std::vector<std::string> words = {"", "a\nb", std::string("\0x", 2)};
  list.push_back({"words", make_strings(words, {3, 1})});
  write_safetensors(dir / "x.safetensors", list, {}, "test");
  const SafetensorsFile file(dir / "x.safetensors", "test");
  for (const TensorToWrite& t : list) {
    const Tensor back = file.tensor(file.find(t.name));
    EXPECT_EQ(back.dtype(), t.value.dtype()) << t.name;
    EXPECT_EQ(back.shape(), t.value.shape()) << t.name;
    if (t.name == "words") {
      EXPECT_EQ(back.to_vector<std::string>(), words);
    } else {
      EXPECT_EQ(bytes_of(back), bytes_of(t.value)) << t.name;
    }
  }
}

// What the Python library wrote: tools/safetensors_check.py --fixture.
TEST(Safetensors, ReadsWhatThePythonLibraryWrote) {
  const TempDir dir;
  const std::string json =
      R"({"__metadata__":{"format":"np"},"w":{"dtype":"F32","shape":[2,2],)"
      R"("data_offsets":[0,16]},"n":{"dtype":"I64","shape":[1],)"
      R"("data_offsets":[16,24]}})";
  const float w[] = {0, 1, 2, 3};
  const int64_t n = 42;
  write_file(
      dir / "x.safetensors",
      file_of(json, std::string(reinterpret_cast<const char*>(w), 16) +
                        std::string(reinterpret_cast<const char*>(&n), 8)));
  const SafetensorsFile file(dir / "x.safetensors", "test");
  EXPECT_EQ(file.metadata().at("format"), "np");
  EXPECT_EQ(file.tensor(file.find("w")).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(file.tensor(file.find("n")).item<int64_t>(), 42);
}

TEST(Safetensors, RefusesHostileHeaders) {
  struct Case {
    std::string json;
    size_t data;
    const char* part;
  };
  const auto entry = [](const std::string& shape, const std::string& offsets,
                        const std::string& name = "a") {
    return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  const std::vector<Case> cases = {
      {"", 0, "does not begin"},
      {"[]", 0, "does not begin"},
      {" {}", 0, "does not begin"},
      {"{", 0, "no JSON"},
      {"{}x", 0, "no JSON"},
      {"{" + entry("[1]", "[0,4]") + "," + entry("[1]", "[4,8]") + "}", 8,
       "twice"},
      {"{" + entry("[1]", "[0,4]") + "," + entry("[1]", "[0,4]", "b") + "}", 4,
       "overlap"},
      {"{" + entry("[1]", "[0,4]") + "," + entry("[1]", "[8,12]", "b") + "}",
       12, "hole"},
      {"{" + entry("[1]", "[0,4]") + "}", 8, "follow the last"},
      {"{" + entry("[2]", "[0,8]") + "}", 4, "truncated"},
      {"{" + entry("[1]", "[4,0]") + "}", 4, "lies at"},
      {"{" + entry("[3]", "[0,8]") + "}", 8, "do not fit"},
      {"{" + entry("[4611686018427387905]", "[0,4]") + "}", 4, "do not fit"},
      {"{" + entry("[4294967296,4294967296]", "[0,0]") + "}", 0, "do not fit"},
      {"{" + entry("[1]", "[0,18446744073709551615]") + "}", 4, "too large"},
      {"{" + entry("[-1]", "[0,4]") + "}", 4, "negative"},
      {"{" + entry("[1.0]", "[0,4]") + "}", 4, "fraction"},
      {"{" + entry("[[1]]", "[0,4]") + "}", 4, "list"},
      {"{" + entry("[\"1\"]", "[0,4]") + "}", 4, "list"},
      {"{" + entry("[1]", "[0,4,4]") + "}", 4, "lacks"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "lacks"},
      {R"({"a":{"dtype":3,"shape":[1],"data_offsets":[0,4]}})", 4, "number"},
      {R"({"a":7})", 0, "number"},
      {R"({"a":null})", 0, "null"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "too deep"},
      {R"({"__metadata__":{"a":1}})", 0, "number"},
      {R"({"a":{"x":{"y":1}}})", 0, "too deep"},
      {"{\"a\":" + std::string(100000, '['), 0, "list"},
      {"{\"\xff\":1}", 0, "no JSON"},
  };
  for (const Case& c : cases) {
    expect_refused<errors::DataLoss>(
        [&] { parse_safetensors_header(c.json, c.data, "test"); }, c.part);
  }
  std::string dims;
  for (int i = 0; i < 100; ++i) dims += i ? ",1" : "1";
  expect_refused<errors::DataLoss>(
      [&] {
        parse_safetensors_header("{" + entry("[" + dims + "]", "[0,4]") + "}",
                                 4, "test");
      },
      "too long");
}

TEST(Safetensors, RefusesHostileLengthsAndNotes) {
  const TempDir dir;
  const auto open = [&](const std::string& bytes) {
    write_file(dir / "x.safetensors", bytes);
    const SafetensorsFile file(dir / "x.safetensors", "test");
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      file.tensor(static_cast<int>(i));
    }
  };
  expect_refused<errors::DataLoss>([&] { open(""); }, "truncated");
  expect_refused<errors::DataLoss>([&] { open("1234567"); }, "truncated");
  expect_refused<errors::DataLoss>([&] { open(le64(UINT64_MAX) + "{}"); },
                                   "promise");
  expect_refused<errors::DataLoss>([&] { open(le64(3) + "{}"); }, "promise");
  expect_refused<errors::DataLoss>([&] { open(le64(1) + "{}"); }, "no JSON");
  const auto noted = [&](const std::string& metadata, const std::string& type,
                         const std::string& data) {
    open(file_of(R"({"__metadata__":{)" + metadata + R"(},"a":{"dtype":")" +
                     type + R"(","shape":[)" + std::to_string(data.size()) +
                     R"(],"data_offsets":[0,)" + std::to_string(data.size()) +
                     "]}}",
                 data));
  };
  expect_refused<errors::DataLoss>(
      [&] { noted(R"("berth.crc32c":"zz")", "U8", "x"); }, "checksums");
  expect_refused<errors::DataLoss>(
      [&] { noted(R"("berth.crc32c":"00000000")", "U8", "x"); }, "checksum");
  expect_refused<errors::DataLoss>([&] { noted("", "BOOL", "\2"); }, "bool");
  expect_refused<errors::DataLoss>(
      [&] { noted(R"("berth.dtype:a":"string 1")", "U8", le64(9) + "x"); },
      "texts");
  expect_refused<errors::DataLoss>(
      [&] { noted(R"("berth.dtype:a":"string 2")", "U8", le64(0)); }, "texts");
  expect_refused<errors::Unimplemented>(
      [&] {
        noted(R"("berth.dtype:a":"string 99999999999 99999999999")", "U8", "x");
      },
      "dtype");
  expect_refused<errors::NotFound>(
      [&] { SafetensorsFile(dir / "none", "test"); }, "No such file");
  expect_refused<errors::InvalidArgument>(
      [&] { SafetensorsFile(dir.path(), "test"); }, "no regular file");
}

TEST(Safetensors, EveryFlippedBitAndEveryCutIsFound) {
  const TempDir dir;
  const Tensor a = numbers_of<float>({1, 2, 3}, {3});
  write_safetensors(dir / "x.safetensors", {{"a", a}}, {}, "test");
  const std::string good = read_file(dir / "x.safetensors");
  // True when the file gives `a`.
  const auto reads = [&](const std::string& bytes) {
    write_file(dir / "y.safetensors", bytes);
    try {
      const SafetensorsFile file(dir / "y.safetensors", "test");
      const int i = file.find("a");
      if (i < 0) return false;
      const Tensor t = file.tensor(i);
      EXPECT_TRUE(t.dtype() != float32 || !(t.shape() == a.shape()) ||
                  bytes_of(t) == bytes_of(a));
      return t.dtype() == float32;
    } catch (const errors::Error&) {
      return false;
    }
  };
  EXPECT_TRUE(reads(good));
  for (size_t n = 0; n < good.size(); n += n < 100 ? 1 : 5) {
    EXPECT_FALSE(reads(good.substr(0, n))) << n;
  }
  const size_t data = good.size() - 12;
  for (size_t bit = 0; bit < 8 * good.size(); bit += bit / 8 < data ? 7 : 1) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const bool same = reads(bad);
    if (bit / 8 >= data) {
      EXPECT_FALSE(same) << bit;
    }
  }
}

// Read by several threads, and in parts that have checksums of their own.
TEST(Safetensors, ReadsLargeTensorsInParts) {
  const TempDir dir;
  const int64_t n = (int64_t{33} << 20) + 5;
  std::string bytes(static_cast<size_t>(n), '\0');
  for (size_t i = 0; i < bytes.size(); i += 997) {
    bytes[i] = static_cast<char>(i / 997);
  }
  const std::string path = dir / "x.safetensors";
  write_safetensors(
      path,
      {{"x", constant(std::span<const uint8_t>(
                          reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
                      {n})}},
      {}, "test");
  EXPECT_TRUE(bytes_of(SafetensorsFile(path, "test").tensor(0)) == bytes);
  std::string file = read_file(path);
  file[file.size() - (size_t{9} << 20)] ^= 1;
  write_file(path, file);
  expect_refused<errors::DataLoss>(
      [&] { (void)SafetensorsFile(path, "test").tensor(0); }, "checksum");
}

TEST(Safetensors, NamesThatCannotBeWrittenAreRefused) {
  const TempDir dir;
  const Tensor a = numbers_of<float>({1}, {1});
  const auto write = [&](const std::string& name) {
    write_safetensors(dir / "x.safetensors", {{"a", a}, {name, a}}, {}, "test");
  };
  expect_refused<errors::InvalidArgument>([&] { write("a"); }, "two tensors");
  expect_refused<errors::InvalidArgument>([&] { write("__metadata__"); },
                                          "reserved");
  expect_refused<errors::InvalidArgument>([&] { write("\xff"); }, "UTF-8");
  EXPECT_FALSE(testing::exists(dir / "x.safetensors"));
  EXPECT_FALSE(testing::exists(dir / "x.safetensors.part"));
}

}  // namespace
}  // namespace berth::io
