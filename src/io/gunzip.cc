// ByteSource over a gzip stream.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "berth/errors.h"
#include "io/byte_source.h"

namespace berth::io {
namespace {

constexpr size_t kGunzipWindow = size_t{64} << 10;
constexpr uint8_t kMagic[2] = {0x1f, 0x8b};
// Wanted by inflateInit2: the largest window, and a gzip header.
constexpr int kGzipWindowBits = 15 + 16;
constexpr int kZlibWindowBits = 15;

class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> raw, std::string name,
             bool zlib = false)
      : raw_(std::move(raw)), name_(std::move(name)), zlib_(zlib) {
    if (inflateInit2(&stream_, zlib ? kZlibWindowBits : kGzipWindowBits) !=
        Z_OK) {
      throw errors::ResourceExhausted(fmt::format(
          "{}: no memory for the gzip decompressor (about 64 KiB)", name_));
    }
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::span<const uint8_t> peek() override {
    if (begin_ == end_) fill();
    return std::span<const uint8_t>(window_).subspan(begin_, end_ - begin_);
  }
  void skip(size_t count) override {
    begin_ += count;
    offset_ += count;
  }
  uint64_t offset() const override { return offset_; }
  std::string position() const override {
    return fmt::format("byte {} of the decompressed data, {} of the file",
                       offset_, raw_->position());
  }
  int64_t bytes_left() const override { return -1; }

 private:
  // Decompresses until the window holds something or the file is at its end.
  void fill() {
    begin_ = end_ = 0;
    while (end_ == 0) {
      const std::span<const uint8_t> in = raw_->peek();
      if (in.empty()) {
        if (in_member_) damaged("the compressed data ends in the middle");
        return;
      }
      if (!in_member_) start_member(in);
      inflate_some(in);
    }
  }

  void start_member(std::span<const uint8_t> in) {
    if (zlib_) {
      if (started_) damaged("bytes follow the end of the zlib data");
      started_ = in_member_ = true;
      return;
    }
    // The rest of a magic that a window cuts in two is checked by inflate.
    const bool magic =
        in[0] == kMagic[0] && (in.size() < 2 || in[1] == kMagic[1]);
    if (!magic) {
      damaged(
          offset_ == 0 && raw_->offset() == 0
              ? "it does not begin as gzip does (1f 8b)"
              : "bytes that are not gzip follow the last gzip member (cut the "
                "file here if they are padding)");
    }
    inflateReset(&stream_);
    in_member_ = true;
  }

  void inflate_some(std::span<const uint8_t> in) {
    const size_t offered = std::min(in.size(), kGunzipWindow);
    stream_.next_in = const_cast<uint8_t*>(in.data());
    stream_.avail_in = static_cast<uInt>(offered);
    stream_.next_out = window_.data();
    stream_.avail_out = static_cast<uInt>(kGunzipWindow);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    raw_->skip(offered - stream_.avail_in);
    end_ = kGunzipWindow - stream_.avail_out;
    if (code == Z_STREAM_END) {
      in_member_ = false;
    } else if (code == Z_MEM_ERROR) {
      throw errors::ResourceExhausted(fmt::format(
          "{}: no memory for the gzip decompressor (about 64 KiB)", name_));
    } else if (code != Z_OK) {
      damaged(stream_.msg != nullptr ? stream_.msg : zError(code));
    }
  }

  [[noreturn]] void damaged(const std::string& what) {
    throw errors::DataLoss(
        fmt::format("{}: {}, at {}; expected an undamaged {} file; fetch it "
                    "again{}",
                    name_, what, position(), zlib_ ? "zlib" : "gzip",
                    zlib_ ? "" : " or decompress it with gunzip"));
  }

  std::unique_ptr<ByteSource> raw_;
  std::string name_;
  bool zlib_ = false, started_ = false;
  z_stream stream_{};
  bool in_member_ = false;
  uint64_t offset_ = 0;
  size_t begin_ = 0, end_ = 0;
  std::array<uint8_t, kGunzipWindow> window_;
};

}  // namespace

std::unique_ptr<ByteSource> gunzip_if_needed(std::unique_ptr<ByteSource> raw,
                                             const std::string& name) {
  const std::span<const uint8_t> start = raw->peek();
  if (start.size() < 2 || start[0] != kMagic[0] || start[1] != kMagic[1]) {
    return raw;
  }
  return std::make_unique<GzipSource>(std::move(raw), name);
}

bool parse_compression(const std::string& name, Compression* to) {
  if (name.empty()) {
    *to = Compression::kNone;
  } else if (name == "GZIP") {
    *to = Compression::kGzip;
  } else if (name == "ZLIB") {
    *to = Compression::kZlib;
  } else {
    return false;
  }
  return true;
}

std::unique_ptr<ByteSource> decompress(std::unique_ptr<ByteSource> raw,
                                       Compression compression,
                                       const std::string& name) {
  if (compression == Compression::kNone) return raw;
  const bool zlib = compression == Compression::kZlib;
  return std::make_unique<GzipSource>(std::move(raw), name, zlib);
}

}  // namespace berth::io
