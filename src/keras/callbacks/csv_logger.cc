// CSVLogger.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "berth/errors.h"
#include "berth/keras/models.h"
#include "keras/callbacks/chief_only.h"

namespace berth::keras::callbacks {

namespace {

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

class CSVLoggerCallback final : public CallbackBase {
 public:
  CSVLoggerCallback(std::string filename, CSVLoggerOptions o)
      : CallbackBase("csv_logger"),
        filename_(std::move(filename)),
        o_(std::move(o)) {}

  void on_train_begin(Model& model) override {
    keys_.clear();
    header_ = true;
    if (!is_chief(model)) return;
    if (o_.append) {
      const std::unique_ptr<std::FILE, CloseFile> old(
          std::fopen(filename_.c_str(), "r"));
      if (old) header_ = std::fgetc(old.get()) == EOF;
    }
    file_.reset(std::fopen(filename_.c_str(), o_.append ? "a" : "w"));
    if (!file_) fail();
  }
  void on_epoch_end(Model&, int epoch, Logs& logs) override {
    if (!file_) return;
    if (keys_.empty()) {
      for (const auto& [name, value] : logs) keys_.push_back(name);
      std::string line = "epoch";
      for (const std::string& k : keys_) line += o_.separator + quoted(k);
      if (header_) write(line);
    }
    std::string line = std::to_string(epoch);
    for (const std::string& k : keys_) {
      const auto it = logs.find(k);
      line += o_.separator +
              (it == logs.end() ? "NA" : fmt::format("{}", it->second));
    }
    write(line);
  }
  void on_train_end(Model&) override { file_.reset(); }

 private:
  std::string quoted(const std::string& name) const {
    if (name.find(o_.separator) == std::string::npos &&
        name.find_first_of("\"\n") == std::string::npos) {
      return name;
    }
    std::string s = "\"";
    for (char c : name) s += c == '"' ? "\"\"" : std::string(1, c);
    return s + "\"";
  }
  void write(const std::string& line) {
    if (std::fputs((line + "\n").c_str(), file_.get()) < 0 ||
        std::fflush(file_.get()) != 0) {
      fail();
    }
  }
  [[noreturn]] void fail() const {
    throw errors::InvalidArgument(fmt::format(
        "CSVLogger: \"{}\" cannot be written: {}; expected a file in a folder "
        "that is there and has room",
        filename_, std::strerror(errno)));
  }

  const std::string filename_;
  const CSVLoggerOptions o_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<std::string> keys_;
  bool header_ = true;
};

}  // namespace

Callback CSVLogger(const std::string& filename, CSVLoggerOptions options) {
  return make_callback<CSVLoggerCallback>(filename, std::move(options));
}

}  // namespace berth::keras::callbacks
