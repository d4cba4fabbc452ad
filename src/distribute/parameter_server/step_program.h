// StepProgram: a scheduled function, split into what servers keep and do and
// what a worker computes.
//
// In each stage the worker pulls values of variables, runs its part on them and
// pushes the inputs of server parts. Values are numbered, arguments first.
// Immutable once made; thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_STEP_PROGRAM_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_STEP_PROGRAM_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "cluster/message.h"
#include "distribute/parameter_server/server_variable.h"

namespace berth::distribute {

// Pulls a value of a variable, or those of its rows that the value `ids` names.
struct Pull {
  struct Part {
    int server = 0;
    std::string key;
    int64_t begin = 0, end = 0;  // rows
  };
  int32_t value = -1;
  int32_t ids = -1;
  DType dtype = float32;
  Shape shape;  // of the variable
  std::vector<Part> parts;
};

// Pushes an input of a server part.
struct Push {
  enum class Cut : uint8_t {
    kWhole,
    kRows,        // rows [begin, end) of the value
    kSparseIds,   // the ids in the range, counted from begin; [n]
    kSparseRows,  // the rows of the value that belong to these ids; [n, ...]
  };
  int32_t value = -1;
  Cut cut = Cut::kWhole;
  int32_t ids = -1;  // kSparseRows: the value that has the ids
  int64_t begin = 0, end = 0;
  int64_t rows = 0;  // of the variable
};

// A graph whose arguments are values; `text` is in the format of
// docs/graph-format.md.
struct WorkerPart {
  std::string text;  // "": nothing to run
  std::vector<int32_t> args, outs;
};

struct ServerPart {
  int server = 0;
  std::string hash;  // of the text
  std::string text;  // not sent to workers
  std::vector<Push> args;
  std::vector<int32_t> outs;
};

struct StepStage {
  std::vector<Pull> pulls;
  WorkerPart worker;
  std::vector<ServerPart> updates;
};

struct StepProgram {
  std::string hash;  // of all texts
  int32_t num_args = 0, num_values = 0;
  std::vector<int32_t> results;
  std::vector<StepStage> stages;
  std::set<int64_t> reads, writes;  // ids of variables
};

// 32 hex digits.
std::string text_hash(const std::string& text);

// The program in the form that is sent to a worker: text, and the large
// constants that its graphs name.
cluster::Message encode_program(const StepProgram& program);
// Throws errors::InvalidArgument for a message in any other form.
StepProgram decode_program(const cluster::Message& message);

// The large constants named by a graph text.
Tensors blobs_of(const std::string& text);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_STEP_PROGRAM_H_
