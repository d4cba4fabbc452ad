// Elements per second of datasets that read files:
//   --model csv[:MB]           a CSV of 1000 MB to batches of 1024 rows
//   --model tfrecord[:COUNT]   1,000,000 small records to batches of 256
//   --model jpeg[:COUNT]       TFRecord of 2000 JPEGs, decoded and resized to
//                              224 x 224, on `cores` threads; and a loop of the
//                              decoder and the resize without any pipeline
// The files are written once to $BERTH_BENCH_DIR (/tmp/berth_bench_files); the
// peer, peers/python/tensorflow_files.py, reads the same.
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "bench/bench_common.h"
#include "berth/data_files.h"
#include "berth/image.h"
#include "berth/ops/array.h"
#include "data/row_source.h"
#include "io/image_codec.h"
#include "preprocess/spans.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace {

using namespace berth;  // NOLINT
namespace fs = std::filesystem;

constexpr int64_t kSide = 224, kHeight = 375, kWidth = 500;

std::string folder() {
  const char* set = std::getenv("BERTH_BENCH_DIR");
  const std::string path = set ? set : "/tmp/berth_bench_files";
  fs::create_directories(path);
  return path;
}

// A row has 10 columns: 8 floats, a word, an integer.
void write_csv(const std::string& path, int64_t megabytes) {
  std::FILE* f = std::fopen((path + ".part").c_str(), "w");
  uint32_t x = 1;
  const auto draw = [&] { return x = x * 1664525u + 1013904223u; };
  for (int64_t i = 0; std::ftell(f) < megabytes * 1'000'000; ++i) {
    for (int k = 0; k < 8; ++k) {
      std::fprintf(f, "%.6g,", static_cast<double>(draw()) / 65536.0 - 30000);
    }
    std::fprintf(f, "word%u,%lld\n", draw() % 1000, static_cast<long long>(i));
  }
  std::fclose(f);
  fs::rename(path + ".part", path);
}

void write_records(const std::string& path, int64_t count) {
  io::TFRecordWriter w(path + ".part");
  for (int64_t i = 0; i < count; ++i) {
    w.write(std::string(static_cast<size_t>(40 + i % 60),
                        static_cast<char>('a' + i % 26)));
  }
  w.close();
  fs::rename(path + ".part", path);
}

void write_jpegs(const std::string& path, int64_t count) {
  io::TFRecordWriter w(path + ".part");
  std::vector<uint8_t> pixels(static_cast<size_t>(kHeight * kWidth * 3));
  for (int64_t n = 0; n < count; ++n) {
    uint32_t x = static_cast<uint32_t>(n) + 1;
    for (int64_t i = 0; i < kHeight * kWidth * 3; ++i) {
      x = x * 1664525u + 1013904223u;
      const double wave = std::sin(0.002 * static_cast<double>(i % 1500) *
                                   static_cast<double>(1 + n % 7)) +
                          std::cos(0.03 * static_cast<double>(i / 1500));
      pixels[static_cast<size_t>(i)] =
          static_cast<uint8_t>(128 + 50 * wave + (x >> 28));
    }
    w.write(io::encode_jpeg(constant(pixels, {kHeight, kWidth, 3}),
                            {.quality = 90}));
  }
  w.close();
  fs::rename(path + ".part", path);
}

void print(const char* name, const berth_bench::Args& args,
           const berth_bench::Timing& t, int64_t elements, int64_t bytes) {
  berth_bench::Line(name, args.cores)
      .timing(t, "ms", 1e3)
      .add("elements_per_second", static_cast<double>(elements) / t.best)
      .add("mb_per_second", static_cast<double>(bytes) / t.best / 1e6)
      .print();
}

int64_t size_of_file(const std::string& path) {
  return static_cast<int64_t>(fs::file_size(path));
}

void run_csv(const berth_bench::Args& args, int64_t megabytes) {
  const std::string path = folder() + "/" + std::to_string(megabytes) + ".csv";
  if (!fs::exists(path)) write_csv(path, megabytes);
  std::vector<data::CsvColumn> columns(8, float32);
  columns.push_back(string_);
  columns.push_back(int64);
  const auto d = data::CsvDataset(path, columns).batch(1024);
  int64_t rows = 0;
  const auto t = berth_bench::measure_blocks(
      [&] {
        rows = 0;
        for (const Tensors& e : d) rows += e[0].shape()[0];
      },
      args.seconds, 1);
  print("files_csv", args, t, rows, size_of_file(path));
}

void run_records(const berth_bench::Args& args, int64_t count) {
  const std::string path = folder() + "/" + std::to_string(count) + ".tfrecord";
  if (!fs::exists(path)) write_records(path, count);
  const data::TFRecordDataset records(path);
  for (bool batched : {true, false}) {
    const data::Dataset d =
        batched ? records.batch(256) : data::Dataset(records);
    int64_t n = 0;
    const auto t = berth_bench::measure_blocks(
        [&] {
          n = 0;
          for (const Tensors& e : d) n += e[0].num_elements();
        },
        args.seconds, 1);
    print(batched ? "files_tfrecord" : "files_tfrecord_single", args, t, n,
          size_of_file(path));
  }
}

void run_jpegs(const berth_bench::Args& args, int64_t count) {
  const std::string path =
      folder() + "/" + std::to_string(count) + "_jpeg.tfrecord";
  if (!fs::exists(path)) write_jpegs(path, count);
  for (bool scaled : {false, true}) {
    const auto d = data::TFRecordDataset(path).map(
        [&](const Tensors& e) -> Tensors {
          return {image::decode_and_resize(e[0], {kSide, kSide},
                                           {.scaled_decode = scaled})};
        },
        {.num_parallel_calls = args.cores == 1 ? 0 : args.cores});
    int64_t n = 0;
    const auto t = berth_bench::measure_blocks(
        [&] {
          n = 0;
          for (const Tensors& e : d) n += e[0].shape()[0] == kSide;
        },
        args.seconds, 1);
    print(scaled ? "files_jpeg_scaled" : "files_jpeg", args, t, n,
          size_of_file(path));
  }
  // The work in one loop, into the memory of the first pass.
  std::vector<std::string> all;
  for (const Tensors& e : data::TFRecordDataset(path)) {
    all.push_back(strings_of(e[0])[0]);
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(kHeight * kWidth * 3));
  std::vector<float> out(static_cast<size_t>(kSide * kSide * 3));
  bool known;
  const auto y = image::make_spans(kHeight, kSide, "bilinear", false, &known);
  const auto x = image::make_spans(kWidth, kSide, "bilinear", false, &known);
  const auto t = berth_bench::measure_blocks(
      [&] {
        for (const std::string& s : all) {
          io::read_jpeg(s, {.channels = 3, .max_pixels = 1 << 20},
                        [&](const io::ImageSize&) { return pixels.data(); });
          image::resample(pixels.data(), kWidth, 3, y, x, out.data());
        }
      },
      args.seconds, 1);
  print("files_jpeg_loop", args, t, count, size_of_file(path));
}

}  // namespace

int main(int argc, char** argv) {
  const auto args = berth_bench::parse_args(argc, argv);
  if (!berth_bench::use_cores(args.cores)) {
    return berth_bench::skip("files", args.cores, "fewer cores than asked for");
  }
  const size_t colon = args.model.find(':');
  const std::string model = args.model.substr(0, colon);
  const int64_t size = colon == std::string::npos
                           ? 0
                           : std::atoll(args.model.c_str() + colon + 1);
  if (model.empty() || model == "csv") run_csv(args, size > 0 ? size : 1000);
  if (model.empty() || model == "tfrecord") {
    run_records(args, size > 0 ? size : 1'000'000);
  }
  if (model.empty() || model == "jpeg") run_jpegs(args, size > 0 ? size : 2000);
  return 0;
}
