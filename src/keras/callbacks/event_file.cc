// Writes records and messages of events.

#include "keras/callbacks/event_file.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/urls.h"
#include "berth/errors.h"
#include "io/record_format.h"

namespace berth::keras {

namespace {

// Fields of the messages, by number: event.proto, summary.proto.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4,
              kSummary = 5;
constexpr int kValue = 1;
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5,
              kTensor = 8, kMetadata = 9;

std::string big_endian(uint32_t v) {
  std::string s;
  for (int shift = 24; shift >= 0; shift -= 8)
    s += static_cast<char>(v >> shift);
  return s;
}

void add_chunk(const std::string& type, const std::string& data,
               std::string* png) {
  const std::string body = type + data;
  *png += big_endian(static_cast<uint32_t>(data.size())) + body +
          big_endian(static_cast<uint32_t>(
              crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                    static_cast<uInt>(body.size()))));
}

std::string png_of(int height, int width, int channels,
                   const std::vector<uint8_t>& pixels) {
  std::string rows;
  const auto row = static_cast<size_t>(width * channels);
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * row, row);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  std::string png = "\x89PNG\r\n\x1a\n";
  add_chunk("IHDR",
            big_endian(static_cast<uint32_t>(width)) +
                big_endian(static_cast<uint32_t>(height)) + '\x08' +
                (channels == 3 ? '\x02' : '\x00') + std::string(3, '\0'),
            &png);
  add_chunk("IDAT", packed, &png);
  add_chunk("IEND", "", &png);
  return png;
}

double wall_time() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

WireMessage scalar_summary(const std::string& tag, double value) {
  return WireMessage().bytes(kTag, tag).single(kSimpleValue,
                                               static_cast<float>(value));
}

WireMessage text_summary(const std::string& tag, const std::string& text,
                         const std::string& plugin,
                         const std::string& content) {
  constexpr int kString = 7;  // DT_STRING
  WireMessage dim, shape, tensor, data, metadata;
  dim.number(1, 1);
  shape.message(2, dim);
  tensor.number(1, kString).message(2, shape).bytes(8, text);
  data.bytes(1, plugin);
  if (!content.empty()) data.bytes(2, content);
  metadata.message(1, data);
  return WireMessage()
      .bytes(kTag, tag)
      .message(kTensor, tensor)
      .message(kMetadata, metadata);
}

WireMessage histogram_summary(const std::string& tag,
                              const std::vector<float>& values) {
  constexpr int kBuckets = 30;
  double low = 0, high = 0, sum = 0, squares = 0, n = 0;
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    low = n == 0 ? v : std::min<double>(low, v);
    high = n == 0 ? v : std::max<double>(high, v);
    sum += v;
    squares += static_cast<double>(v) * v;
    ++n;
  }
  const int buckets = high > low ? kBuckets : 1;
  const double width = (high - low) / buckets;
  std::vector<double> limits, counts(static_cast<size_t>(buckets), 0);
  for (int i = 1; i <= buckets; ++i) {
    limits.push_back(i == buckets ? high : low + width * i);
  }
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    const int at = width > 0 ? static_cast<int>((v - low) / width) : 0;
    counts[static_cast<size_t>(std::clamp(at, 0, buckets - 1))] += 1;
  }
  WireMessage histogram;
  histogram.real(1, low).real(2, high).real(3, n).real(4, sum);
  histogram.real(5, squares).reals(6, limits).reals(7, counts);
  return WireMessage().bytes(kTag, tag).message(kHistogram, histogram);
}

WireMessage image_summary(const std::string& tag, int height, int width,
                          int channels, const std::vector<uint8_t>& pixels) {
  WireMessage image;
  image.number(1, height).number(2, width).number(3, channels);
  image.bytes(4, png_of(height, width, channels, pixels));
  return WireMessage().bytes(kTag, tag).message(kImage, image);
}

EventFile::EventFile(const std::string& folder) {
  refuse_url(folder, "TensorBoard");
  static std::atomic<int> count{0};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}.v2", folder,
                      static_cast<int64_t>(wall_time()), host.data(), getpid(),
                      count.fetch_add(1));
  file_ = std::fopen(path_.c_str(), "wb");
  if (!file_) fail();
  write(WireMessage().bytes(kFileVersion, "brain.Event:2"));
  flush();
}
EventFile::~EventFile() {
  if (file_) std::fclose(file_);
}

void EventFile::fail() const {
  throw errors::InvalidArgument(fmt::format(
      "TensorBoard: \"{}\" cannot be written: {}; expected a log_dir that can "
      "be made, with room",
      path_, std::strerror(errno)));
}

void EventFile::add(int64_t step, const std::vector<WireMessage>& values) {
  if (values.empty()) return;
  WireMessage summary;
  for (const WireMessage& v : values) summary.message(kValue, v);
  write(WireMessage().number(kStep, step).message(kSummary, summary));
}
void EventFile::add_graph(const WireMessage& graph) {
  write(WireMessage().message(kGraphDef, graph));
}

void EventFile::write(WireMessage event) {
  record(event.real(kWallTime, wall_time()).text());
}

// Length, its checksum, data, its checksum; little-endian, as the processors
// are that this runs on.
void EventFile::record(const std::string& data) {
  const uint64_t length = data.size();
  const uint32_t of_length = io::record_checksum(
      {reinterpret_cast<const char*>(&length), sizeof length});
  const uint32_t of_data = io::record_checksum(data);
  const bool fine = std::fwrite(&length, sizeof length, 1, file_) == 1 &&
                    std::fwrite(&of_length, sizeof of_length, 1, file_) == 1 &&
                    std::fwrite(data.data(), data.size(), 1, file_) == 1 &&
                    std::fwrite(&of_data, sizeof of_data, 1, file_) == 1;
  if (!fine) fail();
}

void EventFile::flush() {
  if (std::fflush(file_) != 0) fail();
}

}  // namespace berth::keras
