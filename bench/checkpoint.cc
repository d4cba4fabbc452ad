// A checkpoint of 1 GB in 48 variables: writing it over what dd does with the
// same bytes, asynchronous writing over a copy of them, and loading over
// reading the file, in turns. Files go to the current folder. "floor_over_read"
// is what reading the file to as many bytes of memory takes, by as many
// threads, where nothing is checked.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kRounds = 7;
constexpr int kStepsBesideSave = 4;

std::vector<Variable> make_variables(int64_t megabytes) {
  std::vector<Variable> list;
  const int64_t n = megabytes * (int64_t{1} << 20) / 4 / 48;
  for (int i = 0; i < 48; ++i) {
    list.emplace_back(fill({n}, i, float32),
                      VariableOptions{.name = "v" + std::to_string(i)});
  }
  return list;
}

double timed(const std::function<void()>& fn) {
  const double start = now_seconds();
  fn();
  return now_seconds() - start;
}

// dd if=/dev/zero of=FILE bs=1M conv=fsync, of so many bytes.
double dd_seconds(const std::string& file, size_t bytes) {
  const std::string command = "dd if=/dev/zero of='" + file +
                              "' bs=1M count=" + std::to_string(bytes >> 20) +
                              " conv=fsync 2>/dev/null";
  std::filesystem::remove(file);
  return timed([&] {
    if (std::system(command.c_str()) != 0) std::exit(1);
  });
}

// read(2) of the whole file, 1 MiB a time.
double read_seconds(const std::string& file) {
  const std::unique_ptr<char[]> buffer(new char[1 << 20]);
  return timed([&] {
    const int fd = open(file.c_str(), O_RDONLY);
    while (read(fd, buffer.get(), 1 << 20) > 0) {
    }
    close(fd);
  });
}

// Reads the bytes to memory that stays.
double read_floor_seconds(const std::string& file, std::vector<char>* to,
                          int threads) {
  return timed([&] {
    const int fd = open(file.c_str(), O_RDONLY);
    const size_t part = to->size() / static_cast<size_t>(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, begin = part * static_cast<size_t>(t)] {
        constexpr size_t kPiece = 1 << 19;
        for (size_t at = begin; at < begin + part; at += kPiece) {
          if (pread(fd, to->data() + at, kPiece, static_cast<off_t>(at)) <= 0) {
            return;
          }
        }
      });
    }
    for (std::thread& t : all) t.join();
    close(fd);
  });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) return skip("checkpoint", args.cores, "cores");
  const int64_t megabytes = args.model.empty() ? 1024 : std::stoll(args.model);
  const std::vector<Variable> list = make_variables(megabytes);
  size_t bytes = 0;
  for (const Variable& v : list) {
    bytes += static_cast<size_t>(v.shape().num_elements()) * 4;
  }
  train::Checkpoint checkpoint({{"list", list}});
  const std::string path = "bench_checkpoint", file = path + ".safetensors";
  double dd = 1e9, write = 1e9, load = 1e9, read = 1e9, floor = 1e9;
  std::vector<char> to(bytes, 2);
  for (int i = 0; i < kRounds; ++i) {
    for (const char* name :
         {"bench_checkpoint.json", "bench_checkpoint.safetensors"}) {
      std::filesystem::remove(name);
    }
    write = std::min(write, timed([&] { checkpoint.write(path); }));
    dd = std::min(dd, dd_seconds("bench_checkpoint.dd", bytes));
    std::filesystem::remove("bench_checkpoint.dd");
    read_seconds(file);  // into the page cache
    read = std::min(read, read_seconds(file));
    floor = std::min(floor, read_floor_seconds(file, &to, args.cores));
    load = std::min(load, timed([&] { checkpoint.read(path); }));
  }
  Line("checkpoint_write", args.cores)
      .add("over_dd", write / dd)
      .add("seconds", write)
      .add("dd_seconds", dd)
      .print();
  Line("checkpoint_load", args.cores)
      .add("over_read", load / read)
      .add("seconds", load)
      .add("read_seconds", read)
      .add("floor_over_read", floor / read)
      .print();

  // Steps that write every variable, while saves go on beside them.
  const auto step = function([&](const Tensor& x) {
    for (const Variable& v : list) v.assign(v.value() * x);
    return x;
  });
  const Tensor one = constant(1.f);
  const std::vector<char> from(bytes, 1);
  double copy = 1e9;
  step(one);
  checkpoint.write(path, {.enable_async = true});  // makes its memory
  checkpoint.sync();
  std::vector<double> plain, delays, calls;
  for (int i = 0; i < kRounds; ++i) {
    copy = std::min(copy,
                    timed([&] { std::memcpy(to.data(), from.data(), bytes); }));
    double without = 0, with = 0;
    for (int k = 0; k < kStepsBesideSave; ++k) {
      plain.push_back(timed([&] { step(one); }));
      without = std::max(without, plain.back());
    }
    for (int k = 0; k < kStepsBesideSave; ++k) {
      with = std::max(with, timed([&] {
                        if (k == 0) {
                          calls.push_back(timed([&] {
                            checkpoint.write(path, {.enable_async = true});
                          }));
                        }
                        step(one);
                      }));
    }
    checkpoint.sync();
    delays.push_back(with - without);
  }
  Line("checkpoint_async", args.cores)
      .add("over_copy", median(delays) / copy)
      .add("delay_seconds", median(delays))
      .add("longest_delay_seconds",
           *std::max_element(delays.begin(), delays.end()))
      .add("call_over_copy", median(calls) / copy)
      .add("copy_seconds", copy)
      .add("step_seconds", median(plain))
      .print();
  for (const auto& entry : std::filesystem::directory_iterator(".")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("bench_checkpoint.") ||
        name.starts_with("bench_checkpoint~")) {
      std::filesystem::remove(entry.path());
    }
  }
  return 0;
}
