// The contents of a graph text and a device list as options of place().
//
// Devices are hypothetical: no device is created, no name looked up. Pure
// functions.

#ifndef BERTH_PLACE_PLACE_TEXT_H_
#define BERTH_PLACE_PLACE_TEXT_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_text.h"
#include "place/costs.h"
#include "place/place.h"

namespace berth {

// Returns the full names of a device list, "CPUx2,GPUx2", in order of
// preference: GPUs, CPUs, others; within a type first those of this process
// (/job:localhost/replica:0/task:0), then by job, replica, task and number.
// Throws errors::InvalidArgument if the list is malformed, empty or longer than
// kMaxPlaceDevices. `text` may request another order.
std::vector<std::string> devices_of_list(std::string_view list,
                                         const GraphText* text = nullptr);

// Returns the same for the text's device lines; parts that a name leaves open
// come from its local task, with number 0. Throws errors::InvalidArgument also
// when two lines name one device.
std::vector<std::string> devices_of_text(const GraphText& text);

// Returns the built-in kernels of a device type ("CPU"); null: none.
using KernelsOfType = std::function<const KernelTable*(const std::string&)>;

// Returns the options that place the text's graph on these devices. An op with
// kernel lines runs where they say; another op of the catalogue where `kernels`
// has it (a null function: on every CPU and GPU); another op of the text
// nowhere. The options refer to the ops of `text`, which must outlive them, but
// to no other part of it.
PlaceOptions place_options(const GraphText& text,
                           const std::vector<std::string>& devices,
                           const KernelsOfType& kernels = nullptr);

// Returns the devices with the speed, memory and links given in the text; the
// rest comes from assumed_machine(). Devices of one class are equally fast;
// those without a class belong to the one named like their type.
Machine machine_of(const GraphText& text,
                   const std::vector<std::string>& devices);

// Returns the costs of the text's graph on that machine: declared, else
// estimated; no kernel where `options` has none. `options.devices` are the
// machine's.
CostTable costs_of_text(const GraphText& text, const Machine& machine,
                        const PlaceOptions& options);

}  // namespace berth

#endif  // BERTH_PLACE_PLACE_TEXT_H_
