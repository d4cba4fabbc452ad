#include "io/idx.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <limits>
#include <random>

#include "berth/errors.h"
#include "io/temp_dir_testing.h"

namespace berth::io {
namespace {

using testing::TempDir;
using testing::write_file;
using Bytes = std::vector<uint8_t>;

Bytes header(uint8_t type, const std::vector<uint32_t>& dims) {
  Bytes out = {0, 0, type, static_cast<uint8_t>(dims.size())};
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      out.push_back(static_cast<uint8_t>(dim >> shift));
    }
  }
  return out;
}

Bytes join(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes cut(const Bytes& bytes, size_t size) {
  return Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
}

Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

Bytes counting(size_t size) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(i * 31 + 7);
  return out;
}

// Two images of 3x4.
Bytes images() { return join(header(0x08, {2, 3, 4}), counting(24)); }

template <typename E>
std::string failure(const Bytes& file, const IdxOptions& options = {}) {
  try {
    read_idx(file, options);
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "\"" << part << "\" is not in: " << text;
}

// Returns the most memory this process ever held, in KiB.
int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Idx, ReadsPlainBytesAndDimensions) {
  const IdxData data = read_idx(images());
  EXPECT_EQ(data.dtype, IdxType::kUint8);
  EXPECT_EQ(data.dims, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(data.bytes, counting(24));
}

TEST(Idx, ReadsGzipByItsMagic) {
  const IdxData data = read_idx(gzip(images()));
  EXPECT_EQ(data.dims, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(data.bytes, counting(24));
}

TEST(Idx, ReadsSeveralGzipMembersCutAnywhere) {
  const Bytes file = images();
  for (size_t at = 0; at <= file.size(); ++at) {
    const Bytes rest(file.begin() + static_cast<ptrdiff_t>(at), file.end());
    const Bytes joined = join(join(gzip(cut(file, at)), gzip({})), gzip(rest));
    EXPECT_EQ(read_idx(joined).bytes, counting(24)) << at;
  }
}

TEST(Idx, ReadsFilesLargerThanTheWindowFromDisk) {
  const TempDir dir;
  const Bytes payload = counting(3'000'000);
  const Bytes file = join(header(0x08, {3000, 1000}), payload);
  for (const Bytes& bytes : {file, gzip(file)}) {
    write_file(dir / "f", std::string(bytes.begin(), bytes.end()));
    const IdxData data = read_idx_file(dir / "f");
    EXPECT_EQ(data.dims, (std::vector<int64_t>{3000, 1000}));
    EXPECT_EQ(data.bytes, payload);
  }
}

TEST(Idx, TurnsWiderElementsIntoThisMachinesByteOrder) {
  // 1.5f is 3fc00000, -2.0 is c000000000000000, -2 in 16 bits is fffe.
  const IdxData f32 =
      read_idx(join(header(0x0D, {1}), {0x3f, 0xc0, 0x00, 0x00}));
  float f = 0;
  memcpy(&f, f32.bytes.data(), 4);
  EXPECT_EQ(f, 1.5f);
  const IdxData f64 =
      read_idx(join(header(0x0E, {1, 1}), {0xc0, 0, 0, 0, 0, 0, 0, 0}));
  double d = 0;
  memcpy(&d, f64.bytes.data(), 8);
  EXPECT_EQ(d, -2.0);
  const IdxData i16 =
      read_idx(join(header(0x0B, {2}), {0xff, 0xfe, 0x01, 0x02}));
  int16_t s[2];
  memcpy(s, i16.bytes.data(), 4);
  EXPECT_EQ(s[0], -2);
  EXPECT_EQ(s[1], 258);
  const IdxData i32 = read_idx(join(header(0x0C, {1}), {0, 1, 0, 0}));
  int32_t i = 0;
  memcpy(&i, i32.bytes.data(), 4);
  EXPECT_EQ(i, 65536);
}

TEST(Idx, AnEmptyDimensionIsAnEmptyArray) {
  const IdxData data = read_idx(header(0x08, {0, 28, 28}));
  EXPECT_EQ(data.dims, (std::vector<int64_t>{0, 28, 28}));
  EXPECT_TRUE(data.bytes.empty());
}

TEST(Idx, EveryTruncationIsDataLoss) {
  const Bytes plain = images();
  for (size_t size = 0; size < plain.size(); ++size) {
    failure<errors::DataLoss>(cut(plain, size));
  }
  const Bytes packed = gzip(plain);
  for (size_t size = 2; size < packed.size(); ++size) {
    failure<errors::DataLoss>(cut(packed, size));
  }
}

TEST(Idx, TruncationNamesTheBytesThereAndExpected) {
  const Bytes plain = images();
  expect_has(failure<errors::DataLoss>(cut(plain, 20)),
             "ends after 4 bytes of elements; expected 24 from its dimensions "
             "[2, 3, 4] of uint8");
  expect_has(failure<errors::DataLoss>(cut(plain, 6)),
             "ends at byte 6, inside the dimensions");
}

TEST(Idx, TrailingBytesAreAnErrorThatSaysWhere) {
  expect_has(failure<errors::DataLoss>(join(images(), {0})),
             "more data follows at byte 40");
  expect_has(failure<errors::DataLoss>(gzip(join(images(), {0}))),
             "more data follows at byte 40 of the decompressed data");
  const Bytes packed = gzip(images());
  expect_has(failure<errors::DataLoss>(join(packed, {'x', 'y'})),
             "not gzip follow the last gzip member");
  expect_has(failure<errors::DataLoss>(join(packed, {'x', 'y'})),
             "byte " + std::to_string(packed.size()) + " of the file");
}

TEST(Idx, AWrongGzipChecksumIsDataLoss) {
  Bytes packed = gzip(images());
  packed[packed.size() - 6] ^= 1;  // the CRC-32 stands before the length
  failure<errors::DataLoss>(packed);
}

TEST(Idx, NamesABadMagicTypeAndRank) {
  expect_has(failure<errors::InvalidArgument>({'G', 'I', 'F', '8', '9'}),
             "47 49 46 38");
  expect_has(failure<errors::InvalidArgument>({0, 0, 0x0A, 1, 0, 0, 0, 0}),
             "unknown element type 0x0a at byte 2");
  expect_has(failure<errors::InvalidArgument>({0, 0, 8, 0}),
             "0 dimensions declared at byte 3; expected 1 to 8");
  expect_has(
      failure<errors::InvalidArgument>(header(8, std::vector<uint32_t>(9, 1))),
      "9 dimensions");
}

TEST(Idx, DimensionsThatOverflowAreRefused) {
  const uint32_t most = std::numeric_limits<uint32_t>::max();
  expect_has(failure<errors::ResourceExhausted>(header(8, {most, most, most})),
             "4294967295, 4294967295, 4294967295");
  // The product is 2^64, which wraps to 0.
  failure<errors::ResourceExhausted>(header(8, {1u << 31, 1u << 31, 4}));
  failure<errors::ResourceExhausted>(header(14, {1u << 30, 1u << 30}));
  // Empty, but no strides exist for it.
  failure<errors::ResourceExhausted>(header(8, {0, most, most, most}));
}

TEST(Idx, RefusesMoreThanTheDeclaredLimitBeforeReading) {
  const Bytes file = join(header(8, {100}), counting(100));
  EXPECT_EQ(read_idx(file, {.max_bytes = 100}).bytes.size(), 100u);
  expect_has(failure<errors::ResourceExhausted>(file, {.max_bytes = 99}),
             "declare 100 bytes of elements; expected at most 99");
  // The default limit is 1 GiB.
  failure<errors::ResourceExhausted>(header(8, {(1u << 30) + 1}));
}

TEST(Idx, MemoryFollowsTheBytesThatArriveNotTheHeader) {
  const Bytes file = gzip(join(header(8, {1u << 30}), counting(10)));
  const int64_t before = peak_kib();
  expect_has(failure<errors::DataLoss>(file), "ends after 10 bytes");
  EXPECT_LT(peak_kib() - before, 256 << 10);
}

TEST(Idx, AGzipBombIsReadOnlyAsFarAsItsHeaderDeclares) {
  // 64 MiB of zeros after a header that declares 4 bytes.
  Bytes bomb = header(8, {4});
  bomb.resize(size_t{64} << 20);
  const Bytes packed = gzip(bomb);
  ASSERT_LT(packed.size(), size_t{100'000});
  expect_has(failure<errors::DataLoss>(packed),
             "more data follows at byte 12 of the decompressed data");
  expect_has(failure<errors::ResourceExhausted>(
                 gzip(header(8, {1u << 20, 1u << 12})), {}),
             "4294967296 bytes");
}

TEST(Idx, RandomAndMutatedBytesEndInDataOrANamedError) {
  std::mt19937 random(7);
  const Bytes seeds[] = {images(), gzip(images()),
                         join(header(13, {2, 2}), counting(16))};
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes file = seeds[round % 3];
    const int changes = static_cast<int>(random() % 6);
    for (int i = 0; i < changes; ++i) {
      file[random() % file.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) file.resize(random() % (2 * file.size()));
    try {
      read_idx(file, {.max_bytes = 1 << 20});
      ++accepted;
    } catch (const errors::Error& error) {
      ASSERT_STRNE(error.what(), "");
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 20'000);
}

TEST(Idx, FilesThatCannotBeReadAreNamedErrorsAndNeverHang) {
  const TempDir dir;
  EXPECT_THROW(read_idx_file(dir / "absent"), errors::NotFound);
  EXPECT_THROW(read_idx_file(dir.path()), errors::InvalidArgument);
  EXPECT_THROW(read_idx_file("/dev/zero"), errors::InvalidArgument);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_idx_file(dir / "pipe"), errors::InvalidArgument);
  EXPECT_THROW(read_idx_file(""), errors::NotFound);
  write_file(dir / "empty", "");
  try {
    read_idx_file(dir / "empty");
    ADD_FAILURE() << "no error";
  } catch (const errors::DataLoss& error) {
    expect_has(std::string(error.what()), dir / "empty");
  }
}

}  // namespace
}  // namespace berth::io
