// Event files as TensorBoard reads them: records with checksums, each a
// message. One thread.

#ifndef BERTH_KERAS_CALLBACKS_EVENT_FILE_H_
#define BERTH_KERAS_CALLBACKS_EVENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/wire_message.h"

namespace berth::keras {

// Values of a Summary.
WireMessage scalar_summary(const std::string& tag, double value);
// For the part of TensorBoard that `plugin` names; `content` is the plugin's.
WireMessage text_summary(const std::string& tag, const std::string& text,
                         const std::string& plugin = "text",
                         const std::string& content = {});
// Counts all values in at most 30 buckets of one width.
WireMessage histogram_summary(const std::string& tag,
                              const std::vector<float>& values);
// A PNG of `pixels` [height, width, channels], 1 or 3 channels.
WireMessage image_summary(const std::string& tag, int height, int width,
                          int channels, const std::vector<uint8_t>& pixels);

class EventFile {
 public:
  // Makes `folder` and a file in it with a name of its own. Throws
  // errors::InvalidArgument when they cannot be written.
  explicit EventFile(const std::string& folder);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(int64_t step, const std::vector<WireMessage>& values);
  void add_graph(const WireMessage& graph);
  void flush();
  const std::string& path() const { return path_; }

 private:
  void write(WireMessage event);
  void record(const std::string& data);
  [[noreturn]] void fail() const;

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_EVENT_FILE_H_
