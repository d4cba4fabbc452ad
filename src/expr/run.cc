// The blocked interpreter.

#include <algorithm>
#include <cstring>

#include "expr/program.h"

namespace berth::expr {

namespace {

// Not a multiple of 4096 bytes over few registers, whose blocks would then
// fall onto the same cache sets.
constexpr size_t kRegisterBytes = kBlock * 8 + 64;
constexpr int kMaxRegisters = kMaxValues + kMaxOutputs;
// Room for rows that are repeated to a block's length and more.
constexpr int kTileBytes = 16384;

// How an input lies in the iteration space: axes from the innermost on,
// neighbours joined.
struct Layout {
  int rank = 0;
  int64_t extent[kMaxRank];
  int64_t stride[kMaxRank];  // in elements; 0: broadcast

  Layout(const Shape& shape, const Shape& full) {
    const int shift = full.rank() - shape.rank();
    int64_t step = 1;
    for (int i = full.rank() - 1; i >= 0; --i) {
      if (full[i] == 1) continue;
      const bool has = i >= shift && shape[i - shift] != 1;
      const int64_t s = has ? step : 0;
      if (rank > 0 && s == stride[rank - 1] * extent[rank - 1] &&
          has == (stride[rank - 1] != 0)) {
        extent[rank - 1] *= full[i];
      } else {
        extent[rank] = full[i];
        stride[rank++] = s;
      }
      if (has) step *= full[i];
    }
  }
  bool same() const { return rank == 0 || (rank == 1 && stride[0] == 1); }
  bool scalar() const { return rank == 1 && stride[0] == 0; }
  bool rows() const { return rank == 2 && stride[0] == 1 && stride[1] == 0; }
};

// Elements that are asked for ahead of a block of a large array.
constexpr int64_t kAhead = 4 * kBlock;

struct alignas(64) Frame {
  unsigned char registers[kMaxRegisters][kRegisterBytes];
  unsigned char broadcast[kMaxInputs][kBlock * 8];
  unsigned char tiles[kTileBytes];
};

}  // namespace

class Run {
 public:
  Run(const ExprProgram& p, const View* in, const View* out)
      : p_(p), in_(in), out_(out), full_(*out[0].shape) {}

  // Not initialised: only what is used is touched.
  void go(Frame& frame) {
    const int64_t n = full_.num_elements();
    if (n == 0) return;
    prepare(frame, n);
    const int64_t first = std::min(n, first_block());
    block(frame, 0, first);
    for (int64_t at = first; at < n; at += kBlock) {
      block(frame, at, std::min<int64_t>(kBlock, n - at));
    }
    if (stream_) p_.ops_.fence();
  }

 private:
  enum class Kind : uint8_t { kSame, kFixed, kTile, kSpread };
  struct Source {
    Kind kind;
    unsigned char* base;         // only read
    int64_t period = 0, at = 0;  // of a tile
  };

  void prepare(Frame& frame, int64_t n) {
    const int64_t longest = std::min<int64_t>(n, kBlock);
    const int first_register = p_.num_inputs_ + p_.num_outputs_;
    for (int r = 0; r < p_.registers_; ++r) {
      at_[first_register + r] = frame.registers[r];
    }
    for (const ExprProgram::Constant& c : p_.constants_) {
      p_.ops_.fill(c.bytes, at_[c.slot], c.size, longest);
    }
    int64_t bytes = 0;
    bool overwrites = false;
    for (int o = 0; o < p_.num_outputs_; ++o) {
      bytes += n * p_.output_size_[o];
      for (int i = 0; i < p_.num_inputs_; ++i) {
        overwrites |= in_[i].data == out_[o].data;
      }
    }
    stream_ = bytes >= kStreamBytes && !overwrites;
    // Blocks of outputs wait in registers until all else is done.
    stage_first_ = stream_ || (overwrites && p_.reads_after_write_);
    for (int i = 0; i < p_.num_inputs_; ++i) add_source(frame, i, longest);
  }

  void add_source(Frame& frame, int i, int64_t longest) {
    const size_t size = p_.input_size_[i];
    auto* data = static_cast<unsigned char*>(in_[i].data);
    Source& s = source_[i];
    s = {Kind::kSame, data};
    if (*in_[i].shape == full_) return;
    const Layout layout(*in_[i].shape, full_);
    if (layout.same()) return;
    if (layout.scalar()) {
      p_.ops_.fill(data, frame.broadcast[i], size, longest);
      s = {Kind::kFixed, frame.broadcast[i]};
      at_[i] = frame.broadcast[i];
      return;
    }
    s.kind = Kind::kSpread;
    if (!layout.rows()) return;
    const int64_t row = layout.extent[0];
    const int64_t need = (row + kBlock) * static_cast<int64_t>(size);
    if (row > 4 * kBlock || tiles_used_ + need > kTileBytes) return;
    unsigned char* tile = frame.tiles + tiles_used_;
    tiles_used_ += (need + 63) / 64 * 64;
    for (int64_t at = 0; at < row + kBlock; at += row) {
      const int64_t count = std::min(row, row + kBlock - at);
      std::memcpy(tile + at * static_cast<int64_t>(size), data,
                  static_cast<size_t>(count) * size);
    }
    s = {Kind::kTile, tile, row};
  }

  // Elements until output 0 stands at the start of a cache line.
  int64_t first_block() const {
    if (!stream_) return kBlock;
    const auto address = reinterpret_cast<uintptr_t>(out_[0].data);
    const size_t size = p_.output_size_[0];
    const auto to_line = static_cast<int64_t>((64 - address % 64) % 64 / size);
    return to_line == 0 ? kBlock : to_line;
  }

  // Processors look ahead within a page only.
  void look_ahead(int64_t at) const {
    constexpr int64_t kLine = 64;
    for (int i = 0; i < p_.num_inputs_; ++i) {
      if (source_[i].kind != Kind::kSame) continue;
      const unsigned char* p = source_[i].base + at * p_.input_size_[i];
      for (int64_t b = 0; b < kBlock * p_.input_size_[i]; b += kLine) {
        __builtin_prefetch(p + b);
      }
    }
  }

  void block(Frame& frame, int64_t at, int64_t n) {
    if (stream_) look_ahead(at + kAhead);
    for (int i = 0; i < p_.num_inputs_; ++i) {
      Source& s = source_[i];
      const auto size = static_cast<int64_t>(p_.input_size_[i]);
      if (s.kind == Kind::kSame) {
        at_[i] = s.base + at * size;
      } else if (s.kind == Kind::kTile) {
        at_[i] = s.base + s.at * size;
        s.at += n;
        if (s.at >= s.period) s.at %= s.period;
      } else if (s.kind == Kind::kSpread) {
        at_[i] = spread(i, at, n, frame.broadcast[i]);
      }
    }
    for (int o = 0; o < p_.num_outputs_; ++o) {
      at_[p_.num_inputs_ + o] = staged(o) ? stage(frame, o) : place(o, at);
    }
    for (const ExprProgram::Instruction& i : p_.code_) {
      i.fn(at_[i.a], at_[i.b], at_[i.c], at_[i.y], n);
    }
    for (int o = 0; o < p_.num_outputs_; ++o) {
      if (!staged(o)) continue;
      const int64_t bytes = n * p_.output_size_[o];
      if (stream_) {
        p_.ops_.stream(stage(frame, o), place(o, at), bytes);
      } else {
        std::memcpy(place(o, at), stage(frame, o), static_cast<size_t>(bytes));
      }
    }
  }

  bool staged(int o) const { return stream_ || (stage_first_ && o == 0); }
  unsigned char* stage(Frame& frame, int o) const {
    return frame.registers[p_.registers_ + o];
  }
  unsigned char* place(int o, int64_t at) const {
    return static_cast<unsigned char*>(out_[o].data) + at * p_.output_size_[o];
  }

  // Elements [at, at + n) of an input that is broadcast along some axes.
  unsigned char* spread(int i, int64_t at, int64_t n,
                        unsigned char* block) const {
    const Layout l(*in_[i].shape, full_);
    const auto size = static_cast<int64_t>(p_.input_size_[i]);
    auto* data = static_cast<unsigned char*>(in_[i].data);
    int64_t index[kMaxRank], rest = at, offset = 0;
    for (int d = 0; d < l.rank; ++d) {
      index[d] = rest % l.extent[d];
      rest /= l.extent[d];
      offset += index[d] * l.stride[d];
    }
    for (int64_t done = 0; done < n;) {
      const int64_t run = std::min(n - done, l.extent[0] - index[0]);
      unsigned char* from = data + offset * size;
      if (l.stride[0] == 0) {
        p_.ops_.fill(from, block + done * size, static_cast<size_t>(size), run);
      } else if (run == n) {
        return from;
      } else {
        std::memcpy(block + done * size, from, static_cast<size_t>(run * size));
      }
      done += run;
      offset += run * l.stride[0];
      index[0] += run;
      for (int d = 0; d < l.rank && index[d] == l.extent[d]; ++d) {
        offset -= l.extent[d] * l.stride[d];
        index[d] = 0;
        if (d + 1 == l.rank) break;
        ++index[d + 1];
        offset += l.stride[d + 1];
      }
    }
    return block;
  }

  const ExprProgram& p_;
  const View* in_;
  const View* out_;
  const Shape& full_;
  void* at_[kMaxInputs + kMaxOutputs + kMaxRegisters];
  Source source_[kMaxInputs];
  int64_t tiles_used_ = 0;
  bool stream_ = false;
  bool stage_first_ = false;
};

void ExprProgram::run(const View* in, const View* out) const {
  Frame frame;  // NOLINT: written before it is read
  Run(*this, in, out).go(frame);
}

}  // namespace berth::expr
