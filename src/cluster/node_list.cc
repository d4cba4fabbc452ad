#include "cluster/node_list.h"

#include <fmt/format.h>

#include "cluster/checks.h"

namespace berth::cluster {

namespace {

constexpr size_t kMostNodes = kMostTasks;

// Reads one list; the position is for messages.
class NodeListReader {
 public:
  NodeListReader(const std::string& what, std::string_view text, Site site)
      : what_(what), text_(text), site_(site) {}

  std::vector<std::string> read() {
    std::vector<std::string> all;
    do {
      for (std::string& host : read_entry()) all.push_back(std::move(host));
      check(all.size() <= kMostNodes, "has too many hosts");
    } while (next(','));
    check(at_ == text_.size(), "has a bracket that was not opened");
    return all;
  }

 private:
  void check(bool ok, const char* why) const {
    if (ok) return;
    refuse(fmt::format("{} is {}, which {} at character {}; expected a list "
                       "such as \"n[1-3,7],login\"",
                       what_, in_quotes(text_), why, at_ + 1),
           site_);
  }

  bool next(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Reads up to a comma outside brackets.
  std::vector<std::string> read_entry() {
    std::vector<std::string> hosts = {""};
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']') {
      if (next('[')) {
        hosts = times(hosts, read_brackets());
        continue;
      }
      const auto byte = static_cast<unsigned char>(text_[at_]);
      check(byte > 0x20 && byte < 0x7f, "has a blank or a control character");
      for (std::string& host : hosts) host += text_[at_];
      ++at_;
    }
    check(at_ > begin, "has an empty entry");
    return hosts;
  }

  std::vector<std::string> times(const std::vector<std::string>& heads,
                                 const std::vector<std::string>& tails) {
    check(heads.size() * tails.size() <= kMostNodes, "has too many hosts");
    std::vector<std::string> all;
    for (const std::string& head : heads) {
      for (const std::string& tail : tails) all.push_back(head + tail);
    }
    return all;
  }

  // "1-3,7]"
  std::vector<std::string> read_brackets() {
    std::vector<std::string> all;
    do {
      const std::string_view first = read_digits();
      const std::string_view last = next('-') ? read_digits() : first;
      add_range(first, last, &all);
    } while (next(','));
    check(next(']'), "has no \"]\" where one belongs");
    return all;
  }

  std::string_view read_digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    check(at_ > begin, "has no number where one belongs");
    check(at_ - begin <= 9, "has a number of more than 9 digits");
    return text_.substr(begin, at_ - begin);
  }

  void add_range(std::string_view first, std::string_view last,
                 std::vector<std::string>* all) {
    const auto number = [](std::string_view digits) {
      int n = 0;
      for (const char c : digits) n = n * 10 + (c - '0');
      return n;
    };
    const int begin = number(first), end = number(last);
    check(begin <= end, "has a range that counts down");
    check(static_cast<size_t>(end - begin) < kMostNodes - all->size(),
          "has too many hosts");
    for (int i = begin; i <= end; ++i) {
      all->push_back(fmt::format("{:0{}}", i, first.size()));
    }
  }

  const std::string& what_;
  std::string_view text_;
  Site site_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::string> expand_node_list(const std::string& what,
                                          std::string_view text, Site site) {
  if (text.size() > (size_t{1} << 20)) {
    refuse(what + " is longer than a MiB", site);
  }
  return NodeListReader(what, text, site).read();
}

std::vector<int> expand_counts(const std::string& what, std::string_view text,
                               Site site) {
  const auto fail = [&] {
    refuse(fmt::format("{} is {}; expected tasks per node such as \"5,4(x3)\"",
                       what, in_quotes(text)),
           site);
  };
  std::vector<int> all;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view entry = rest.substr(0, comma);
    int count = 0, times = 1;
    if (const size_t x = entry.find("(x"); x != std::string_view::npos) {
      if (!entry.ends_with(')') ||
          !whole_number(entry.substr(x + 2, entry.size() - x - 3), &times)) {
        fail();
      }
      entry = entry.substr(0, x);
    }
    if (!whole_number(entry, &count) || count < 1 || times < 1 ||
        count > kMostTasks ||
        static_cast<size_t>(times) > kMostNodes - all.size()) {
      fail();
    }
    all.insert(all.end(), static_cast<size_t>(times), count);
    if (comma == rest.size()) return all;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace berth::cluster
