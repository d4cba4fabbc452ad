#include "conformance/strategy/plan_races.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <vector>

namespace berth::strategy_suite {

namespace {

struct Buffer {
  bool arena = false, variable = false;
  int device = 0;
  int64_t bytes = 0;
  int64_t first = 0, last = 0;  // bytes in the arena
};

struct Access {
  int step = 0;
  bool write = false, update = false;
};

struct Step {
  int stream = 0;
  std::string text;
  std::vector<int> waits;
  // Per stream: the last step that is done when this one starts, and itself.
  std::map<int, int> after;
};

std::vector<int> numbers_after(const std::string& line,
                               const std::string& word) {
  std::vector<int> list;
  const size_t at = line.find(" " + word + " ");
  if (at == std::string::npos) return list;
  std::istringstream in(line.substr(at + word.size() + 2));
  std::string item;
  in >> item;
  std::istringstream items(item);
  for (std::string n; std::getline(items, n, ',');) {
    if (n.empty() || n.find_first_not_of("0123456789") != n.npos) return list;
    list.push_back(std::stoi(n));
  }
  return list;
}

class Races {
 public:
  explicit Races(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("buffer ")) read_buffer(line);
      if (line.starts_with("step ")) read_step(line);
      // The ops of a region: an update changes the step's variables.
      if (line.starts_with("  op ")) mark_updates(line);
    }
  }

  std::string first() {
    order();
    for (auto a = accesses_.begin(); a != accesses_.end(); ++a) {
      for (auto b = a; b != accesses_.end(); ++b) {
        if (!overlap(a->first, b->first)) continue;
        const std::string race = between(*a, *b);
        if (!race.empty()) return race;
      }
    }
    return "";
  }

 private:
  using Entry = std::pair<const int, std::vector<Access>>;

  void read_buffer(const std::string& line) {
    std::istringstream in(line);
    std::string word, where;
    int id = 0;
    in >> word >> id >> where;
    Buffer b;
    b.variable = where == "variable";
    b.device = numbers_after(line, "device").at(0);
    b.bytes = numbers_after(line, "bytes").at(0);
    const auto offset = numbers_after(line, "offset");
    b.arena = !offset.empty();
    if (b.arena) {
      b.first = offset[0];
      b.last = b.first + b.bytes;
    }
    buffers_[id] = b;
  }

  void read_step(const std::string& line) {
    Step step;
    step.stream = numbers_after(line, "stream").at(0);
    step.text = line;
    step.waits = numbers_after(line, "waits");
    const int at = static_cast<int>(steps_.size());
    steps_.push_back(step);
    for (int b : numbers_after(line, "in")) {
      accesses_[b].push_back({at, false, false});
    }
    for (const char* word : {"out", "scratch", "partials"}) {
      for (int b : numbers_after(line, word)) {
        accesses_[b].push_back({at, true, false});
      }
    }
    mark_updates(line);
  }

  // An optimizer reads its rates and counters, which are scalars.
  void mark_updates(const std::string& line) {
    const bool assigns = line.find("Assign") != line.npos;
    if (!assigns && line.find("Apply") == line.npos) return;
    const int at = static_cast<int>(steps_.size()) - 1;
    for (auto& [b, list] : accesses_) {
      const Buffer& buffer = buffers_.at(b);
      if (!buffer.variable || (!assigns && buffer.bytes <= 8)) continue;
      for (Access& a : list) {
        if (a.step == at) a.write = a.update = true;
      }
    }
  }

  void order() {
    std::map<int, int> last;  // by stream
    for (size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      auto join = [&](const std::map<int, int>& other) {
        for (const auto& [stream, at] : other) {
          const auto [it, fresh] = step.after.try_emplace(stream, at);
          if (!fresh) it->second = std::max(it->second, at);
        }
      };
      const auto before = last.find(step.stream);
      if (before != last.end()) {
        join(steps_[static_cast<size_t>(before->second)].after);
      }
      for (int w : step.waits) join(steps_[static_cast<size_t>(w)].after);
      step.after[step.stream] = last[step.stream] = static_cast<int>(i);
    }
  }

  bool overlap(int a, int b) const {
    if (a == b) return true;
    const Buffer& x = buffers_.at(a);
    const Buffer& y = buffers_.at(b);
    return x.arena && y.arena && x.device == y.device && x.first < y.last &&
           y.first < x.last;
  }

  bool ordered(int a, int b) const {
    const auto& [first, last] = std::minmax(a, b);
    const auto& after = steps_[static_cast<size_t>(last)].after;
    const auto it = after.find(steps_[static_cast<size_t>(first)].stream);
    return it != after.end() && it->second >= first;
  }

  std::string between(const Entry& a, const Entry& b) const {
    for (const Access& x : a.second) {
      for (const Access& y : b.second) {
        if ((!x.write && !y.write) || (x.update && y.update)) continue;
        if (ordered(x.step, y.step)) continue;
        return fmt::format("buffers {} and {}: nothing orders\n  {}\n  {}",
                           a.first, b.first,
                           steps_[static_cast<size_t>(x.step)].text,
                           steps_[static_cast<size_t>(y.step)].text);
      }
    }
    return "";
  }

  std::map<int, Buffer> buffers_;
  std::vector<Step> steps_;
  std::map<int, std::vector<Access>> accesses_;  // by buffer
};

}  // namespace

std::string race_in(const std::string& plan_text) {
  return Races(plan_text).first();
}

}  // namespace berth::strategy_suite
