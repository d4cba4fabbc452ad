// A row of the suite: what is trained, how it is cut, and on what.

#ifndef BERTH_CONFORMANCE_STRATEGY_ROW_H_
#define BERTH_CONFORMANCE_STRATEGY_ROW_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "berth/distribute.h"

namespace berth::strategy_suite {

// Examples of an epoch in batches of 16.
enum class Examples : uint8_t {
  kEven,    // 16, 16, 16
  kUneven,  // 16, 16, 13
  kEmpty,   // 16, 16, 1: all replicas but one get nothing
};
int64_t count_of(Examples examples);
inline constexpr int64_t kBatch = 16;

// How training is called.
enum class Way : uint8_t {
  kFit,           // of tensors, or of a dataset where there are more than two
  kTrainOnBatch,  // batch by batch
};

struct Row {
  std::string model = "dense";
  std::string optimizer = "momentum";
  Examples examples = Examples::kUneven;
  std::string strategy = "mirrored";  // or "central", "one_device",
                                      // "multi_worker": devices of each task
  std::string devices = "CPUx2";      // or names: "CPU:0,GPU:1"
  std::string shares = "equal";       // "1:3", "auto"
  int devices_per_replica = 1;
  int slices = 0;
  std::string algorithm = "auto";  // "ring", "pairs", "one", "direct"
  int64_t pack_bytes = 0;
  double timeout_seconds = 0;
  uint64_t seed = 0;  // of the order of simulated work; 0: launch order
  std::string sharding = "none";  // "optimizer", "gradients", "parameters"
  Way way = Way::kFit;

  // All fields that are not as above, in letters, digits and underscores.
  std::string name() const;
  // "CPU" or "GPU", of the first device.
  std::string kind() const;
};
std::ostream& operator<<(std::ostream& out, const Row& row);

using Numbers = std::vector<double>;
inline Numbers numbers(const Tensor& t) { return t.to_vector<double>(); }

// "CPUx2" -> CPU:0, CPU:1.
std::vector<std::string> device_names(const std::string& devices);

distribute::Strategy strategy_of(const Row& row);

// Rows whose fields are drawn, of these models: others than anyone would write
// down. `one_kind`: devices of one kind, and slices, for equal bits.
std::vector<Row> random_rows(const std::vector<std::string>& models, int count,
                             bool one_kind);

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_ROW_H_
