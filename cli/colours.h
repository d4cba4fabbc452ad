// Colours on a terminal, unless NO_COLOR is set or it supports none.

#ifndef BERTH_CLI_COLOURS_H_
#define BERTH_CLI_COLOURS_H_

#include <cstdio>
#include <string>

namespace berth::cli {

class Colours {
 public:
  // Colours for text written to `to`.
  explicit Colours(std::FILE* to);
  bool on() const { return on_; }

  std::string bold(const std::string& text) const;
  std::string warning(const std::string& text) const;
  std::string error(const std::string& text) const;
  // One of six colours, by number.
  std::string number(size_t n, const std::string& text) const;

 private:
  std::string painted(const char* code, const std::string& text) const;

  const bool on_;
};

}  // namespace berth::cli

#endif  // BERTH_CLI_COLOURS_H_
