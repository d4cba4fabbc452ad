// Fuzz target of the graph text: any bytes end in a graph that verifies and
// prints to a text that parses to itself, or in an error with its place.

#include "graph/fuzz/read_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  berth::GraphText text;
  berth::read_text(data, size, &text);
  return 0;
}
