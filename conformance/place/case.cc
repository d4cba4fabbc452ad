#include "conformance/place/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "device/device_name.h"

namespace berth::conformance {

namespace {

constexpr const char* kDefaultDevices = "CPUx1,GPUx2";

class Reader {
 public:
  Reader(const std::filesystem::path& path, const std::string& prelude,
         std::vector<PlaceCase>* cases)
      : path_(path), prelude_(prelude), cases_(*cases) {}

  void read() {
    std::ifstream in(path_);
    if (!in) throw std::runtime_error(path_.string() + ": cannot be read");
    for (std::string line; std::getline(in, line);) {
      ++number_;
      if (line.empty() || line[0] == '#') continue;
      if (line.starts_with("case ")) {
        begin(line.substr(5));
      } else if (line == "partition") {
        kind_ = CaseKind::kPartition;
      } else if (line == "eager") {
        kind_ = CaseKind::kEager;
      } else if (!open_) {
        fail("expected 'case', 'partition' or 'eager'");
      } else if (line.starts_with("---")) {
        expect(line.substr(3));
      } else if (into_.empty()) {
        setting(line);
      } else {
        for (Expected* e : into_) outcome(line, *e);
      }
    }
    finish();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(
        fmt::format("{}:{}: {}", path_.filename().string(), number_, what));
  }

  PlaceCase& last() { return cases_.back(); }

  void begin(const std::string& head) {
    finish();
    open_ = true;
    cases_.emplace_back();
    PlaceCase& c = last();
    c.kind = kind_;
    c.file = path_.stem();
    c.line = number_;
    c.text = "berth-graph 1\n" + prelude_;
    std::string_view rest = head;
    while (rest.size() > 2 && rest[0] == 'B' && rest[1] >= '0' &&
           rest[1] <= '9') {
      const size_t end = std::min(rest.find(' '), rest.size());
      c.rules.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    c.title = rest;
    if (c.rules.empty() || c.title.empty()) {
      fail("expected 'case RULE... TITLE'");
    }
  }

  // A line above "---": of the graph, unless it is a setting of ours.
  void setting(const std::string& line) {
    PlaceCase& c = last();
    const std::vector<std::string> w = words_of(line);
    if (w[0] == "devices") {
      c.devices = w.at(1);
    } else if (w[0] == "soft") {
      c.soft = w.at(1);
    } else if (w[0] == "call") {
      c.call = line.substr(5);
    } else {
      own_devices_ = own_devices_ || w[0] == "device";
      c.text += line + "\n";
    }
  }

  void expect(const std::string& policy) {
    PlaceCase& c = last();
    into_.clear();
    if (policy.empty() || policy == " default") into_.push_back(&c.berth);
    if (policy.empty() || policy == " tensorflow") {
      into_.push_back(&c.tensorflow);
    }
    if (into_.empty()) fail("expected '---', '--- default', '--- tensorflow'");
    for (Expected* e : into_) e->given = true;
  }

  void outcome(const std::string& line, Expected& e) {
    const std::vector<std::string> w = words_of(line);
    if (w[0] == "error") {
      const bool any = w.size() > 1 && line.find('"') == 6;
      e.error = any ? "*" : w.at(1);
      e.words.assign(w.begin() + (any ? 1 : 2), w.end());
      if (e.words.empty()) fail("an error without words");
    } else if (w[0] == "known") {
      e.known = line.substr(5);
    } else if (w[0] == "note" && w.size() == 3) {
      e.notes.insert(w[1] + " " + w[2]);
    } else if (w[0] == "fallback" && w.size() == 3) {
      e.fallbacks[w[1]] = w[2];
    } else if (w.size() == 4 && w[2] == "->") {
      e.edges.insert(line);
    } else if (last().kind == CaseKind::kEager) {
      e.choice = line;
    } else {
      devices(w, e);
    }
  }

  // "a GPU:0, b CPU:0"
  void devices(const std::vector<std::string>& w, Expected& e) {
    if (w.size() % 2 != 0) fail("expected 'NODE DEVICE, NODE DEVICE, ...'");
    for (size_t i = 0; i < w.size(); i += 2) {
      std::string device = w[i + 1];
      if (device.ends_with(",")) device.pop_back();
      if (!e.devices.emplace(w[i], device).second) fail("a node again");
    }
  }

  void finish() {
    if (!open_) return;
    PlaceCase& c = last();
    if (!c.berth.given && !c.tensorflow.given) fail("a case without '---'");
    if (c.devices.empty() && !own_devices_) c.devices = kDefaultDevices;
    into_.clear();
    own_devices_ = open_ = false;
  }

  const std::filesystem::path& path_;
  const std::string& prelude_;
  std::vector<PlaceCase>& cases_;
  CaseKind kind_ = CaseKind::kPlace;
  int number_ = 0;
  bool open_ = false, own_devices_ = false;
  std::vector<Expected*> into_;  // what the lines below "---" are for
};

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<PlaceCase> read_cases() {
  const std::filesystem::path folder = place_folder();
  const std::string prelude = read_all(folder / "prelude.txt");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".txt") && name != "prelude.txt" &&
        name != "names.txt" && name != "CMakeLists.txt") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<PlaceCase> cases;
  for (const auto& file : files) Reader(file, prelude, &cases).read();
  return cases;
}

}  // namespace

config::SoftPlacement PlaceCase::soft_policy() const {
  if (soft == "warn") return config::SoftPlacement::kWarn;
  if (soft == "silent") return config::SoftPlacement::kSilent;
  if (soft == "error") return config::SoftPlacement::kError;
  throw std::runtime_error(fmt::format("{}:{}: soft {}", file, line, soft));
}

const std::vector<PlaceCase>& all_place_cases() {
  static const std::vector<PlaceCase> cases = read_cases();
  return cases;
}

std::string place_folder() { return BERTH_PLACE_CASES; }

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    std::string word;
    const bool quoted = line[i] == '"';
    i += quoted;
    while (i < line.size() && line[i] != (quoted ? '"' : ' ')) {
      i += quoted && line[i] == '\\';
      if (i < line.size()) word += line[i++];
    }
    i += quoted;
    words.push_back(std::move(word));
  }
  return words;
}

std::string short_name(const std::string& full_name) {
  const DeviceName n = DeviceName::parse(full_name);
  const std::string device =
      fmt::format("{}:{}", n.type.value_or("?"), n.id.value_or(-1));
  if (n.job == "localhost" && n.task == 0) return device;
  return fmt::format("{}:{}/{}", n.job.value_or("?"), n.task.value_or(-1),
                     device);
}

}  // namespace berth::conformance
