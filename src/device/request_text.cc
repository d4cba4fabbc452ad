#include "device/request_text.h"

#include <fmt/format.h>

namespace berth {

std::string request_text(const DeviceName& name) {
  const std::string what =
      fmt::format("{}:{}", name.type.value_or("CPU"), name.id.value_or(0));
  const std::string job = name.job.value_or("localhost");
  const int task = name.task.value_or(0);
  if (job != "localhost" || task != 0) {
    return fmt::format("/job:{}/task:{}/device:{}", job, task, what);
  }
  const bool plain = !name.type || name.type == "CPU" || name.type == "GPU";
  return (plain ? "/" : "/device:") + what;
}

}  // namespace berth
