// Case: one placement case of conformance/place/*.txt, as data.
//
// A file holds cases; a case is a title that begins with the rules it comes
// from, settings, a graph text, and what follows from the rules (README.md).
// Values.

#ifndef BERTH_CONFORMANCE_PLACE_CASE_H_
#define BERTH_CONFORMANCE_PLACE_CASE_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/config.h"
#include "place/place.h"

namespace berth::conformance {

enum class CaseKind : uint8_t { kPlace, kPartition, kEager };

// What must come out under one policy.
struct Expected {
  bool given = false;
  std::map<std::string, std::string> devices;  // node -> "GPU:1", "*": any
  std::string error;                           // its class, "*": any, "": none
  std::vector<std::string> words;              // that its message holds
  std::multiset<std::string> notes;            // "request-ignored read"
  std::map<std::string, std::string> fallbacks;  // node -> part of the request
  std::multiset<std::string>
      edges;           // "transfer a:0 -> GPU:1", "control a -> b"
  std::string known;   // why it fails for now; "": it holds
  std::string choice;  // eager: "GPU:1 resource"
};

struct PlaceCase {
  CaseKind kind = CaseKind::kPlace;
  std::string file, title;  // "groups", "a node joins ..."
  int line = 0;
  std::vector<std::string> rules;
  std::string devices;  // a device list; "": those of the text
  std::string soft = "error";
  std::string text;  // a whole graph text
  std::string call;  // eager: `Read(resource at GPU:1) on "/CPU:0"`
  Expected berth, tensorflow;

  const Expected& expected(PlacePolicy policy) const {
    return policy == PlacePolicy::kBerth ? berth : tensorflow;
  }
  config::SoftPlacement soft_policy() const;
};

// All cases of all files but names.txt, in order. Throws std::runtime_error
// "FILE:LINE: ..." for a file that is not well-formed.
const std::vector<PlaceCase>& all_place_cases();

// The names of the files that belong here, with full paths.
std::string place_folder();

// Splits at blanks, but not inside quotes, which are taken away.
std::vector<std::string> words_of(std::string_view line);

// "GPU:1"; "worker:0/GPU:1" for a device of another job or task.
std::string short_name(const std::string& full_name);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_PLACE_CASE_H_
