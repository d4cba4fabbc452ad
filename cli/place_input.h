// The input of `berth place`: a graph text, devices, the engine's kernels.

#ifndef BERTH_CLI_PLACE_INPUT_H_
#define BERTH_CLI_PLACE_INPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "place/place.h"

namespace berth::cli {

// Larger files are refused.
inline constexpr size_t kMaxGraphBytes = size_t{1} << 30;

// Returns the contents of a file; "-" is standard input. Throws UsageError.
std::string read_file(const std::string& path);

// Reads a graph text, which may be inside a file of ConcreteFunction::save().
// Throws UsageError.
std::string read_graph_file(const std::string& path);

struct PlaceInput {
  GraphText text;
  std::vector<std::string> devices;  // full names, in order of preference
  PlaceOptions options;              // refers to the ops of `text`
};

// Returns the devices on which a graph text is placed.
using DevicesOfText = std::function<std::vector<std::string>(const GraphText&)>;

// Returns the devices of a list. Throws UsageError: "--devices: ...".
std::vector<std::string> devices_of_option(const std::string& list,
                                           const GraphText* text = nullptr);

// Parses the contents of `path`. If the function is null, the text gives the
// devices. Throws as read_place_input().
PlaceInput parse_place_input(const std::string& path, const std::string& bytes,
                             const DevicesOfText& devices_for = nullptr);

// Reads and parses `path`. Devices are those of `device_list` or, when that is
// empty, of the text. Throws UsageError: no such file, "PATH: line N, column C:
// ...", no nodes, no devices.
PlaceInput read_place_input(const std::string& path,
                            const std::string& device_list);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLACE_INPUT_H_
