// debugging::enable_dump_debug_info(): files that TensorBoard's debugger reads.
//
// DebugEvent messages (debug_event.proto) in records: one file each for the
// run, source files, stack frames, devices ("graphs") and executions. Calls
// stay in a ring and are written at the end, or when the process ends.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>

#include "base/immortal.h"
#include "base/wire_message.h"
#include "berth/debugging_dump.h"
#include "berth/errors.h"
#include "berth/io.h"
#include "io/atomic_file.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/op_def.h"
#include "op/watched_ops.h"
#include "tensor/numbers_found.h"
#include "tensor/tensor_impl.h"

namespace berth::debugging {

namespace {

// TensorDebugMode and DataType, by number in their protos.
constexpr const char* kModes[] = {
    "",      "NO_TENSOR", "CURT_HEALTH", "CONCISE_HEALTH", "FULL_HEALTH",
    "SHAPE", "",          "FULL_TENSOR"};
constexpr int kNoTensor = 1, kCurtHealth = 2, kConciseHealth = 3,
              kFullHealth = 4, kShape = 5, kFullTensor = 7;
constexpr int kDataTypes[kNumDTypes] = {0, 1, 2,  3, 9,  4, 10, 20, 14, 19,
                                        6, 8, 18, 7, 21, 5, 17, 22, 23};
constexpr int kDouble = 2;
// Fields of DebugEvent.
constexpr int kWallTime = 1, kMetadata = 3, kSourceFile = 4, kStackFrame = 6,
              kExecution = 9, kDevice = 12;

double wall_time() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

WireMessage tensor_proto(int type, const Shape& shape, std::string_view bytes) {
  WireMessage dims;
  for (const int64_t d : shape) dims.message(2, WireMessage().number(1, d));
  return WireMessage().number(1, type).message(2, dims).bytes(4, bytes);
}

class Dump {
 public:
  Dump(const std::string& root, DumpOptions o, int mode)
      : o_(std::move(o)), mode_(mode), regex_(o_.op_regex) {
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
    host_ = host.data();
    prefix_ = fmt::format("{}/tfdbg_events.{}.{}", root,
                          static_cast<int64_t>(wall_time()), host_);
    for (const char* kind : {"metadata", "source_files", "stack_frames",
                             "graphs", "execution", "graph_execution_traces"}) {
      files_.emplace(kind, io::TFRecordWriter(prefix_ + "." + kind));
    }
    write("metadata", kMetadata,
          WireMessage()
              .bytes(1, "2.21.0")  // whose format it is
              .bytes(2, "debug.Event:1")
              .bytes(3, fmt::format("{:x}", getpid())));
    for (auto& [kind, file] : files_) file.flush();
  }

  void add(const OpDef& op, std::span<const Tensor> out, Site site) {
    const bool looks =
        mode_ != kNoTensor &&
        (o_.op_regex.empty() ||
         std::regex_search(op.name(), regex_,
                           std::regex_constants::match_continuous));
    WireMessage call, ids, devices;
    call.bytes(1, op.name()).number(2, static_cast<int64_t>(out.size()));
    std::vector<WireMessage> values;
    std::lock_guard lock(mutex_);
    for (const Tensor& t : out) {
      ids.packed(static_cast<uint64_t>(next_id_));
      const int device = device_number(t.device());
      devices.packed(static_cast<uint64_t>(device));
      if (looks && size_of(t.dtype()) > 0) {
        values.push_back(value_of(t, next_id_, device));
      }
      ++next_id_;
    }
    call.bytes(5, ids.text()).number(6, looks ? mode_ : kNoTensor);
    for (const WireMessage& v : values) call.message(7, v);
    call.message(8, WireMessage().bytes(1, host_).bytes(2, frame_of(site)));
    call.bytes(9, devices.text());
    calls_.push_back(
        WireMessage().real(kWallTime, wall_time()).message(kExecution, call));
    const auto most = static_cast<size_t>(o_.circular_buffer_size);
    if (most == 0) return flush_calls();
    if (calls_.size() > most) calls_.pop_front();
  }

  void flush() {
    std::lock_guard lock(mutex_);
    flush_calls();
  }

 private:
  void write(const char* kind, int field, const WireMessage& what) {
    files_.at(kind).write(
        WireMessage().real(kWallTime, wall_time()).message(field, what).text());
  }
  void flush_calls() {
    for (const WireMessage& c : calls_) files_.at("execution").write(c.text());
    calls_.clear();
    for (auto& [kind, file] : files_) file.flush();
  }

  int device_number(const std::string& name) {
    const auto [it, is_new] =
        devices_.try_emplace(name, static_cast<int>(devices_.size()) + 1);
    if (is_new) {
      write("graphs", kDevice,
            WireMessage().bytes(1, name).number(2, it->second));
    }
    return it->second;
  }

  // A name of the line, which has been written once, as has its file.
  std::string frame_of(Site site) {
    const std::string file = site.file ? site.file : "?";
    std::string id = fmt::format("{}:{}", file, site.line);
    if (!frames_.insert(id).second) return id;
    const auto [it, is_new] =
        sources_.try_emplace(file, static_cast<int>(sources_.size()));
    if (is_new) {
      WireMessage source;
      source.bytes(1, file).bytes(2, host_);
      std::ifstream text(file);
      for (std::string line; std::getline(text, line);) source.bytes(3, line);
      write("source_files", kSourceFile, source);
    }
    write("stack_frames", kStackFrame,
          WireMessage().bytes(1, id).message(
              2, WireMessage()
                     .number(1, it->second)
                     .number(2, site.line)
                     .bytes(4, site.frame ? site.frame : "")));
    return id;
  }

  // What the mode wants to know, as a vector of doubles, or the value.
  WireMessage value_of(const Tensor& t, int64_t id, int device) const {
    const auto count = static_cast<size_t>(t.num_elements());
    std::string data(count * size_of(t.dtype()), '\0');
    t.copy_to(data.data());
    const int type = kDataTypes[static_cast<size_t>(t.dtype())];
    if (mode_ == kFullTensor) return tensor_proto(type, t.shape(), data);
    NumbersFound n;
    n.add(data.data(), count, t.dtype());
    std::vector<double> row = {static_cast<double>(id)};
    const auto add = [&row](auto... values) {
      (row.push_back(static_cast<double>(values)), ...);
    };
    const size_t plus = n.infinities - n.negative_infinities;
    if (mode_ == kCurtHealth) add(n.bad());
    if (mode_ == kConciseHealth) {
      add(count, n.negative_infinities, plus, n.nans);
    }
    if (mode_ == kFullHealth) {
      add(device, type, t.rank(), count, n.negative_infinities, plus, n.nans,
          n.negatives, n.zeros, n.positives);
    }
    if (mode_ == kShape) {  // the last six lengths
      add(type, t.rank(), count);
      for (int d = std::max(t.rank() - 6, 0); row.size() < 10; ++d) {
        add(d < t.rank() ? t.shape()[d] : 0);
      }
    }
    return tensor_proto(kDouble, Shape{static_cast<int64_t>(row.size())},
                        {reinterpret_cast<const char*>(row.data()),
                         row.size() * sizeof(double)});
  }

  const DumpOptions o_;
  const int mode_;
  const std::regex regex_;
  std::string host_, prefix_;
  std::mutex mutex_;  // everything below
  std::map<std::string, io::TFRecordWriter, std::less<>> files_;
  std::map<std::string, int> devices_, sources_;
  std::set<std::string> frames_;
  std::deque<WireMessage> calls_;
  int64_t next_id_ = 1;
};

struct OpenDump {
  std::mutex mutex;
  std::shared_ptr<Dump> dump;
};
OpenDump& open_dump() {
  static auto& open = immortal<OpenDump>();
  return open;
}
std::shared_ptr<Dump> current_dump() {
  std::lock_guard lock(open_dump().mutex);
  return open_dump().dump;
}

void dump_op(const OpDef& op, std::span<const Tensor> out) {
  static thread_local bool inside = false;  // reads do not count
  if (inside || op.kind() != OpKind::kCompute) return;
  const auto dump = current_dump();
  if (dump == nullptr) return;
  inside = true;
  struct Ends {
    ~Ends() { inside = false; }
  } ends;
  const DispatchGuard plain(nullptr);
  dump->add(op, out, t_state.site);
}

}  // namespace

void enable_dump_debug_info(const std::string& dump_root,
                            const DumpOptions& given) {
  DumpOptions options = given;
  int mode = 0;
  for (int m = 1; m < 8; ++m) {
    if (options.tensor_debug_mode == kModes[m] && *kModes[m]) mode = m;
  }
  if (mode == 0 || dump_root.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "enable_dump_debug_info: folder \"{}\", tensor_debug_mode \"{}\"; "
        "expected a folder, and NO_TENSOR, CURT_HEALTH, CONCISE_HEALTH, "
        "FULL_HEALTH, SHAPE or FULL_TENSOR",
        dump_root, options.tensor_debug_mode));
  }
  options.circular_buffer_size =
      std::max<int64_t>(options.circular_buffer_size, 0);
  io::make_folder(dump_root, "enable_dump_debug_info");
  try {
    auto dump = std::make_shared<Dump>(dump_root, std::move(options), mode);
    std::lock_guard lock(open_dump().mutex);
    open_dump().dump = std::move(dump);
  } catch (const std::regex_error& e) {
    throw errors::InvalidArgument(fmt::format(
        "enable_dump_debug_info: op_regex: {}; expected a regular expression",
        e.what()));
  }
  g_op_watcher = &dump_op;
}

void flush_dump_debug_info() {
  if (const auto dump = current_dump()) dump->flush();
}

void disable_dump_debug_info() {
  g_op_watcher = nullptr;
  flush_dump_debug_info();
  std::lock_guard lock(open_dump().mutex);
  open_dump().dump = nullptr;
}

namespace {
[[gnu::destructor]] void end_dump() {
  if (current_dump() == nullptr) return;
  try {
    disable_dump_debug_info();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "berth: enable_dump_debug_info: %s\n", e.what());
  }
}
}  // namespace

}  // namespace berth::debugging
