#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "berth/data_files.h"
#include "berth/io.h"
#include "berth/ops/array.h"
#include "data/testing.h"
#include "io/temp_dir_testing.h"
#include "tensor/string_tensor.h"

namespace berth::io {
namespace {

using data::Dataset;
using data::has;
using testing::TempDir;
using testing::write_file;
using Texts = std::vector<std::string>;

// The texts of component 0 of all elements.
Texts texts(const Dataset& dataset) {
  Texts all;
  for (const Tensors& e : dataset) {
    for (std::string& s : strings_of(e[0])) all.push_back(std::move(s));
  }
  return all;
}

// A record as the format's description says, with checksums computed bit by
// bit.
std::string record(const std::string& bytes) {
  const auto masked = [](const std::string& s) {
    uint32_t c = ~0u;
    for (char b : s) {
      c ^= static_cast<uint8_t>(b);
      for (int i = 0; i < 8; ++i) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    c = ~c;
    c = (c >> 15 | c << 17) + 0xa282ead8u;
    return std::string(reinterpret_cast<const char*>(&c), 4);
  };
  const uint64_t n = bytes.size();
  const std::string head(reinterpret_cast<const char*>(&n), 8);
  return head + masked(head) + bytes + masked(bytes);
}

std::string compressed(const std::string& bytes, int window_bits) {
  z_stream s{};
  deflateInit2(&s, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&s, bytes.size()) + 64, '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

TEST(TFRecordDataset, ReadsRecordsOfEverySizeFromEveryFile) {
  const TempDir dir;
  Texts wanted{"", "a", std::string(5000, 'x'), std::string(700000, 'y')};
  std::string file;
  for (const std::string& s : wanted) file += record(s);
  write_file(dir / "a", file);
  write_file(dir / "b", record("last"));
  write_file(dir / "empty", "");
  wanted.push_back("last");
  const data::TFRecordDataset d({dir / "a", dir / "empty", dir / "b"});
  EXPECT_EQ(texts(d), wanted);
  EXPECT_EQ(texts(d.batch(2)), wanted);
  EXPECT_EQ(texts(d.batch(2).take(1)), (Texts{"", "a"}));
  EXPECT_EQ(texts(d.batch(2, {.drop_remainder = true})).size(), 4u);
  EXPECT_EQ(d.element_spec()[0].str(), "string[]");
  const auto names =
      Dataset::from_tensor_slices({constant({dir / "b", dir / "b"})});
  EXPECT_EQ(texts(data::TFRecordDataset(names)), (Texts{"last", "last"}));
}

TEST(TFRecordDataset, ReadsGzipAndZlib) {
  const TempDir dir;
  std::string file;
  Texts wanted;
  for (int i = 0; i < 5000; ++i) {
    wanted.push_back("record " + std::to_string(i * 7919));
    file += record(wanted.back());
  }
  write_file(dir / "g", compressed(file, 15 + 16));
  write_file(dir / "z", compressed(file, 15));
  EXPECT_EQ(
      texts(data::TFRecordDataset(dir / "g", {.compression_type = "GZIP"})),
      wanted);
  EXPECT_EQ(
      texts(data::TFRecordDataset(dir / "z", {.compression_type = "ZLIB"})),
      wanted);
  const std::string plain = message_of<errors::DataLoss>(
      [&] { texts(data::TFRecordDataset(dir / "g")); });
  EXPECT_TRUE(says(plain, "compression_type = \"GZIP\""));
  EXPECT_TRUE(says(plain, "record_dataset_test.cc"));
  EXPECT_THROW(
      texts(data::TFRecordDataset(dir / "z", {.compression_type = "GZIP"})),
      errors::DataLoss);
  write_file(dir / "cut", compressed(file, 31).substr(0, 9000));
  EXPECT_THROW(
      texts(data::TFRecordDataset(dir / "cut", {.compression_type = "GZIP"})),
      errors::DataLoss);
}

TEST(TFRecordDataset, RefusesEveryChangedByteAndEveryCut) {
  const TempDir dir;
  const std::string good = record("first") + record("second one");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x20;
    write_file(dir / "f", bad);
    EXPECT_THROW(texts(data::TFRecordDataset(dir / "f")), errors::DataLoss)
        << i;
    if (i == 0 || i == record("first").size()) continue;
    write_file(dir / "f", good.substr(0, i));
    EXPECT_THROW(texts(data::TFRecordDataset(dir / "f")), errors::DataLoss)
        << i;
  }
}

TEST(TFRecordDataset, NamesTheLimitTheFileAndTheLine) {
  const TempDir dir;
  write_file(dir / "f", record(std::string(100, 'x')));
  const data::TFRecordDataset d(dir / "f", {.max_record_bytes = 99});
  const std::string m =
      message_of<errors::ResourceExhausted>([&] { texts(d); });
  EXPECT_TRUE(says(m, "has 100 bytes; expected at most 99"));
  EXPECT_TRUE(says(m, "TFRecordDataset ("));
  EXPECT_TRUE(says(m, dir / "f"));
  EXPECT_THROW(texts(data::TFRecordDataset(dir / "none")), errors::NotFound);
  EXPECT_THROW(texts(data::TFRecordDataset(dir.path())),
               errors::InvalidArgument);
  EXPECT_THROW(data::TFRecordDataset("f", {.compression_type = "ZIP"}),
               errors::InvalidArgument);
  EXPECT_THROW(data::TFRecordDataset("f", {.max_record_bytes = 0}),
               errors::InvalidArgument);
}

TEST(TFRecordWriter, WritesWhatTheFormatSays) {
  const TempDir dir;
  {
    TFRecordWriter w(dir / "f");
    w.write("hello");
    w.write(constant(""));
    w.close();
    EXPECT_THROW(w.write("more"), errors::FailedPrecondition);
  }
  EXPECT_EQ(testing::read_file(dir / "f"), record("hello") + record(""));
  for (const char* type : {"GZIP", "ZLIB"}) {
    Texts wanted;
    TFRecordWriter w(dir / type, {.compression_type = type});
    for (int i = 0; i < 3000; ++i) {
      wanted.push_back(std::string(static_cast<size_t>(i % 97), 'a'));
      w.write(wanted.back());
      if (i == 1000) w.flush();
    }
    w.close();
    EXPECT_EQ(
        texts(data::TFRecordDataset(dir / type, {.compression_type = type})),
        wanted);
  }
  EXPECT_THROW(TFRecordWriter(dir / "no/f"), errors::NotFound);
  EXPECT_THROW(TFRecordWriter("/dev/full").write(std::string(1 << 20, 'x')),
               errors::ResourceExhausted);
}

TEST(TextLineDataset, CutsAtEveryKindOfLineEnd) {
  const TempDir dir;
  const std::string wide(600000, 'w');
  write_file(dir / "a", "one\ntwo\r\n\n" + wide + "\nlast");
  write_file(dir / "b", "next\n");
  const Texts wanted{"one", "two", "", wide, "last", "next"};
  const data::TextLineDataset d({dir / "a", dir / "b"});
  EXPECT_EQ(texts(d), wanted);
  EXPECT_EQ(texts(d.batch(4)), wanted);
  EXPECT_THROW(
      texts(data::TextLineDataset(dir / "a", {.max_record_bytes = 1000})),
      errors::ResourceExhausted);
}

TEST(FileDatasets, ReadSeveralFilesInTurn) {
  const TempDir dir;
  write_file(dir / "a", "a1\na2\na3\n");
  write_file(dir / "b", "b1\n");
  write_file(dir / "c", "c1\nc2\n");
  const std::vector<std::string> files{dir / "a", dir / "b", dir / "c"};
  const Texts one_by_one{"a1", "a2", "a3", "b1", "c1", "c2"};
  for (const int64_t n : {0, 1}) {
    EXPECT_EQ(texts(data::TextLineDataset(files, {.num_parallel_reads = n})),
              one_by_one);
  }
  // Two at once: a and b in turn. b ends in a turn of its own, then c takes its
  // place, as in TensorFlow.
  const Texts two{"a1", "b1", "a2", "a3", "c1", "c2"};
  data::TextLineDataset lines(files, {.num_parallel_reads = 2});
  EXPECT_EQ(texts(lines), two);
  EXPECT_EQ(texts(lines), two);
  const auto names = Dataset::from_tensor_slices(
      {constant(std::vector<std::string>(files), {3})});
  EXPECT_EQ(texts(data::TextLineDataset(names, {.num_parallel_reads = 2})),
            two);
  Texts all = texts(
      data::TextLineDataset(files, {.num_parallel_reads = data::AUTOTUNE}));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, one_by_one);
  write_file(dir / "r", record("x") + record("y"));
  write_file(dir / "s", record("z"));
  EXPECT_EQ(texts(data::TFRecordDataset({dir / "r", dir / "s"},
                                        {.num_parallel_reads = 2})),
            (Texts{"x", "z", "y"}));
  write_file(dir / "t", "1234");
  write_file(dir / "u", "56");
  EXPECT_EQ(texts(data::FixedLengthRecordDataset({dir / "t", dir / "u"}, 2,
                                                 {.num_parallel_reads = 2})),
            (Texts{"12", "56", "34"}));
  EXPECT_THROW(data::TextLineDataset(files, {.num_parallel_reads = -7}),
               errors::InvalidArgument);
  EXPECT_THROW(data::TextLineDataset(
                   files, {.compression_type = "zip", .num_parallel_reads = 2}),
               errors::InvalidArgument);
  EXPECT_TRUE(texts(data::TextLineDataset(std::vector<std::string>{},
                                          {.num_parallel_reads = 2}))
                  .empty());
}

TEST(FixedLengthRecordDataset, LeavesHeaderAndFooterOut) {
  const TempDir dir;
  write_file(dir / "f", "HHabcdefghiF");
  const data::FixedLengthRecordDataset d(
      dir / "f", 3, {.header_bytes = 2, .footer_bytes = 1});
  EXPECT_EQ(texts(d), (Texts{"abc", "def", "ghi"}));
  EXPECT_EQ(texts(d.batch(2)), (Texts{"abc", "def", "ghi"}));
  EXPECT_THROW(texts(data::FixedLengthRecordDataset(dir / "f", 5)),
               errors::DataLoss);
  EXPECT_THROW(
      texts(data::FixedLengthRecordDataset(dir / "f", 1, {.header_bytes = 99})),
      errors::DataLoss);
  EXPECT_THROW(data::FixedLengthRecordDataset(dir / "f", 0),
               errors::InvalidArgument);
}

// A pass that is saved at `at` and restored goes on as if nothing had been.
void expect_restores(const Dataset& d, int at) {
  data::Iterator whole = d.make_iterator();
  for (int i = 0; i < at; ++i) whole.next();
  const data::IteratorState state = whole.save();
  data::Iterator rest = d.make_iterator();
  rest.restore(state);
  for (;;) {
    const auto a = whole.next(), b = rest.next();
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) return;
    for (size_t c = 0; c < a->size(); ++c) {
      EXPECT_EQ((*a)[c].str(), (*b)[c].str());
    }
  }
}

TEST(FileDatasets, RestoreWhereTheyStood) {
  const TempDir dir;
  std::string file, csv = "a,b\n";
  for (int i = 0; i < 7; ++i) {
    file += record("record " + std::to_string(i));
    csv += std::to_string(i) + ",w" + std::to_string(i) + "\n";
  }
  write_file(dir / "a", file);
  write_file(dir / "b", compressed(file, 31));
  write_file(dir / "c", csv);
  const auto names =
      data::list_files({dir / "a", dir / "a"}, {.shuffle = false}).repeat(2);
  for (int at = 0; at < 9; ++at) {
    expect_restores(data::TFRecordDataset({dir / "a", dir / "a"}), at);
    expect_restores(data::TFRecordDataset(names), at);
    expect_restores(
        data::TFRecordDataset(dir / "b", {.compression_type = "GZIP"}), at);
    expect_restores(data::TextLineDataset({dir / "c", dir / "c"}), at);
    expect_restores(data::CsvDataset({dir / "c", dir / "c"}, {int32, string_},
                                     {.header = true}),
                    at);
  }
  for (int at = 0; at < 5; ++at) {
    expect_restores(data::TFRecordDataset({dir / "a", dir / "a"}).batch(3), at);
    expect_restores(
        data::CsvDataset(dir / "c", {int32, string_}, {.header = true})
            .batch(2),
        at);
  }
}

TEST(FileDatasets, DoNotRestoreIntoOtherFiles) {
  const TempDir dir;
  write_file(dir / "a", record("one") + record("two"));
  write_file(dir / "b", record("one"));
  const data::TFRecordDataset a(dir / "a"), b(dir / "b");
  data::Iterator it = a.make_iterator();
  it.next();
  const data::IteratorState state = it.save();
  EXPECT_THROW(b.make_iterator().restore(state), errors::DataLoss);
  write_file(dir / "a", "");
  EXPECT_TRUE(says(
      message_of<errors::DataLoss>([&] { a.make_iterator().restore(state); }),
      "shorter now"));
}

TEST(DecodeRaw, ReadsNumbersInBothByteOrders) {
  const Tensor bytes = constant(
      {std::string("\x01\x02\x03\x04", 4), std::string("\0\0\0\x05", 4)});
  EXPECT_EQ(decode_raw(bytes, uint8).shape(), (Shape{2, 4}));
  EXPECT_EQ(decode_raw(bytes, int32).to_vector<int>(),
            (std::vector<int>{0x04030201, 0x05000000}));
  EXPECT_EQ(decode_raw(bytes, int32, /*little_endian=*/false).to_vector<int>(),
            (std::vector<int>{0x01020304, 5}));
  EXPECT_THROW(decode_raw(bytes, int64), errors::InvalidArgument);
  EXPECT_THROW(decode_raw(constant({"a", "bc"}), uint8),
               errors::InvalidArgument);
  EXPECT_THROW(decode_raw(constant(1), uint8), errors::InvalidArgument);
}

TEST(ListFiles, FindsSortsAndShuffles) {
  const TempDir dir;
  for (const char* name : {"b.txt", "a.txt", "c.dat", "d.txt"}) {
    write_file(dir / name, name);
  }
  const Texts sorted{dir / "a.txt", dir / "b.txt", dir / "d.txt"};
  EXPECT_EQ(texts(data::list_files({dir / "*.txt"}, {.shuffle = false})),
            sorted);
  EXPECT_EQ(texts(data::list_files({dir / "[ab].txt", dir / "?.txt"},
                                   {.shuffle = false})),
            sorted);
  Texts drawn = texts(data::list_files({dir / "*.txt"}, {.seed = 3}));
  EXPECT_EQ(drawn, texts(data::list_files({dir / "*.txt"}, {.seed = 3})));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, sorted);
  EXPECT_TRUE(says(
      message_of<errors::NotFound>([&] { data::list_files({dir / "*.png"}); }),
      "*.png"));
  EXPECT_EQ(texts(data::TextLineDataset(
                data::list_files({dir / "*.txt"}, {.shuffle = false}))),
            (Texts{"a.txt", "b.txt", "d.txt"}));
}

TEST(ReadFile, ReturnsWhatWriteFileWrote) {
  const TempDir dir;
  const std::string bytes("a\0b\xff", 4);
  io::write_file(dir / "f", constant(bytes));
  EXPECT_EQ(strings_of(io::read_file(dir / "f"))[0], bytes);
  EXPECT_EQ(strings_of(io::read_file(constant(dir / "f")))[0], bytes);
  EXPECT_THROW(io::read_file(dir / "f", 3), errors::ResourceExhausted);
  EXPECT_THROW(io::read_file(dir / "none"), errors::NotFound);
  EXPECT_THROW(io::write_file(dir / "no/f", constant("")), errors::NotFound);
}

TEST(IdxDataset, GivesARowOfEachFile) {
  const TempDir dir;
  const auto idx = [](char type, std::vector<char> dims, std::string bytes) {
    std::string s{0, 0, type, static_cast<char>(dims.size())};
    for (char d : dims) s += std::string{0, 0, 0, d};
    return s + bytes;
  };
  write_file(dir / "x",
             idx(0x0b, {2, 2}, std::string("\0\1\0\2\xff\xff\1\0", 8)));
  write_file(dir / "y", idx(8, {2}, "\5\6"));
  const data::IdxDataset d({dir / "x", dir / "y"});
  std::vector<int> x, y;
  for (const Tensors& e : d.batch(2)) {
    x = e[0].to_vector<int>();
    y = e[1].to_vector<int>();
  }
  EXPECT_EQ(x, (std::vector<int>{1, 2, -1, 256}));
  EXPECT_EQ(y, (std::vector<int>{5, 6}));
  write_file(dir / "z", idx(8, {3}, "\5\6\7"));
  EXPECT_THROW(data::IdxDataset({dir / "x", dir / "z"}),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::io
