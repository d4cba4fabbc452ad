#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "berth/berth.h"

namespace berth {
namespace {

// Fields of a message with a number, in order: a reader of its own.
std::vector<std::string> fields(const std::string& message, int number) {
  std::vector<std::string> found;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      v |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return v;
    }
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    std::string value;
    if ((tag & 7) == 0) {
      value = std::to_string(varint());
    } else {
      const size_t n = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : varint();
      value = message.substr(at, n);
      at += n;
    }
    if (static_cast<int>(tag >> 3) == number) found.push_back(value);
  }
  return found;
}

// Messages of the file whose name ends so.
std::vector<std::string> records(const std::string& folder,
                                 const std::string& ending) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != "." + ending) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string s = text.str();
    for (size_t at = 0; at < s.size();) {
      uint64_t n = 0;
      std::memcpy(&n, s.data() + at, 8);
      all.push_back(s.substr(at + 12, n));
      at += 16 + n;
    }
  }
  return all;
}

std::string dump_folder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/dump_" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

// The doubles of the first value of an execution.
std::vector<double> summary_of(const std::string& event) {
  const std::string call = fields(event, 9).at(0);
  const std::string bytes = fields(fields(call, 7).at(0), 4).at(0);
  std::vector<double> row(bytes.size() / 8);
  std::memcpy(row.data(), bytes.data(), bytes.size());
  return row;
}

std::vector<std::string> log_of(const std::string& mode,
                                const std::string& folder,
                                debugging::DumpOptions o = {}) {
  const Tensor x = reshape(constant({1.f, 2.f, -3.f, 0.f}), {2, 2});
  o.tensor_debug_mode = mode;
  debugging::enable_dump_debug_info(folder, o);
  math::log(x).to_vector<float>();
  debugging::disable_dump_debug_info();
  return records(folder, "execution");
}

// What TensorFlow 2.21's DebugNumericSummaryV2 has for log([1, 2, -3, 0]).
TEST(DebugDump, HasTheSummariesOfTensorFlow) {
  const auto row = [](const std::string& mode) {
    const auto events = log_of(mode, dump_folder(mode));
    EXPECT_EQ(events.size(), 1u);
    EXPECT_EQ(fields(fields(events.at(0), 9).at(0), 1).at(0), "Log");
    std::vector<double> row = summary_of(events.at(0));
    row.erase(row.begin());  // the tensor's number
    return row;
  };
  using Row = std::vector<double>;
  EXPECT_EQ(row("CURT_HEALTH"), (Row{1}));
  EXPECT_EQ(row("CONCISE_HEALTH"), (Row{4, 1, 0, 1}));
  // device, dtype, rank, size, -inf, inf, nan, negative, zero, positive
  EXPECT_EQ(row("FULL_HEALTH"), (Row{1, 1, 2, 4, 1, 0, 1, 0, 1, 1}));
  EXPECT_EQ(row("SHAPE"), (Row{1, 2, 4, 2, 2, 0, 0, 0, 0}));
}

TEST(DebugDump, NamesFilesLinesAndDevices) {
  const std::string folder = dump_folder("lines");
  const auto events = log_of("NO_TENSOR", folder);
  ASSERT_EQ(events.size(), 1u);
  const std::string call = fields(events[0], 9).at(0);
  EXPECT_EQ(fields(call, 6).at(0), "1");
  EXPECT_TRUE(fields(call, 7).empty());
  const std::string frame = fields(fields(call, 8).at(0), 2).at(0);
  const auto frames = records(folder, "stack_frames");
  ASSERT_EQ(frames.size(), 1u);
  const std::string named = fields(frames[0], 6).at(0);
  EXPECT_EQ(fields(named, 1).at(0), frame);
  const auto line = std::stoul(fields(fields(named, 2).at(0), 2).at(0));
  const auto sources = records(folder, "source_files");
  ASSERT_EQ(sources.size(), 1u);
  const std::string source = fields(sources[0], 4).at(0);
  EXPECT_NE(fields(source, 1).at(0).find("debug_dump_test.cc"),
            std::string::npos);
  const auto lines = fields(source, 3);
  if (!lines.empty()) {  // where the source lies as it was built
    EXPECT_NE(lines.at(line - 1).find("math::log(x)"), std::string::npos);
  }
  EXPECT_NE(fields(fields(records(folder, "graphs").at(0), 12).at(0), 1)
                .at(0)
                .find("CPU:0"),
            std::string::npos);
  EXPECT_EQ(fields(fields(records(folder, "metadata").at(0), 3).at(0), 2).at(0),
            "debug.Event:1");
}

TEST(DebugDump, KeepsValuesAndTheLastCalls) {
  const auto events = log_of("FULL_TENSOR", dump_folder("values"));
  const std::string tensor = fields(fields(events.at(0), 9).at(0), 7).at(0);
  const std::string bytes = fields(tensor, 4).at(0);
  ASSERT_EQ(bytes.size(), 16u);
  float second = 0;
  std::memcpy(&second, bytes.data() + 4, 4);
  EXPECT_FLOAT_EQ(second, 0.6931472f);

  const std::string folder = dump_folder("ring");
  debugging::enable_dump_debug_info(folder, {.circular_buffer_size = 3});
  const Tensor x = constant({1.f, 2.f});
  for (int i = 0; i < 10; ++i) math::exp(x);
  math::log(x);
  debugging::disable_dump_debug_info();
  const auto last = records(folder, "execution");
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(fields(fields(last[2], 9).at(0), 1).at(0), "Log");
}

TEST(DebugDump, LooksOnlyIntoOpsThatMatch) {
  const std::string folder = dump_folder("regex");
  const auto others =
      log_of("CURT_HEALTH", folder, {.op_regex = "(Exp|MatMul)"});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_TRUE(fields(fields(others[0], 9).at(0), 7).empty());
}

TEST(DebugDump, FunctionsAreWrittenOpByOp) {
  const auto f =
      function([](const Tensor& x) { return math::reduce_sum(math::exp(x)); });
  const Tensor x = constant({1.f, 2.f});
  f(x);
  const std::string folder = dump_folder("functions");
  debugging::enable_dump_debug_info(folder);
  f(x);
  debugging::disable_dump_debug_info();
  std::string ops;
  for (const std::string& e : records(folder, "execution")) {
    ops += fields(fields(e, 9).at(0), 1).at(0) + " ";
  }
  EXPECT_NE(ops.find("Exp "), ops.npos) << ops;
  EXPECT_NE(ops.find("Sum"), ops.npos) << ops;
}

TEST(DebugDump, RefusesOtherModes) {
  EXPECT_THROW(
      debugging::enable_dump_debug_info("/tmp/x", {.tensor_debug_mode = "ALL"}),
      errors::InvalidArgument);
  EXPECT_THROW(debugging::enable_dump_debug_info(""), errors::InvalidArgument);
  EXPECT_THROW(debugging::enable_dump_debug_info(dump_folder("wrong"),
                                                 {.op_regex = "("}),
               errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
