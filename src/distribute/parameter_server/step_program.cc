#include "distribute/parameter_server/step_program.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "berth/errors.h"
#include "graph/blob_table.h"

namespace berth::distribute {

using StepJson = nlohmann::json;

std::string text_hash(const std::string& text) {
  // FNV-1a twice, with different initial values.
  uint64_t a = 14695981039346656037ull, b = 0x9e3779b97f4a7c15ull;
  for (const char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001b3ull + (b >> 47);
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

Tensors blobs_of(const std::string& text) {
  constexpr std::string_view kMark = "blob ";
  constexpr size_t kDigits = 32;
  Tensors blobs;
  std::set<std::string> seen;
  for (size_t at = text.find(kMark); at != std::string::npos;
       at = text.find(kMark, at + 1)) {
    const std::string hash = text.substr(at + kMark.size(), kDigits);
    if (hash.find_first_not_of("0123456789abcdef") != std::string::npos ||
        !seen.insert(hash).second) {
      continue;
    }
    Tensor t = find_blob(hash);
    if (t.defined()) blobs.push_back(std::move(t));
  }
  return blobs;
}

namespace {

StepJson pull_json(const Pull& p) {
  StepJson parts = StepJson::array();
  for (const Pull::Part& s : p.parts) {
    parts.push_back({s.server, s.key, s.begin, s.end});
  }
  StepJson shape = StepJson::array();
  for (int i = 0; i < p.shape.rank(); ++i) shape.push_back(p.shape[i]);
  return {{"value", p.value},
          {"ids", p.ids},
          {"dtype", static_cast<int>(p.dtype)},
          {"shape", shape},
          {"parts", parts}};
}

StepJson server_part_json(const ServerPart& u) {
  StepJson args = StepJson::array();
  for (const Push& a : u.args) {
    args.push_back(
        {a.value, static_cast<int>(a.cut), a.ids, a.begin, a.end, a.rows});
  }
  return {
      {"server", u.server}, {"hash", u.hash}, {"args", args}, {"outs", u.outs}};
}

// Value numbers are used as indices: each is checked once, here.
int32_t value_number(const StepJson& j, int32_t limit, int32_t least = 0) {
  const auto v = j.get<int64_t>();
  if (v >= least && v < limit) return static_cast<int32_t>(v);
  throw errors::InvalidArgument(
      fmt::format("a program names value {} of {}", v, limit));
}

std::vector<int32_t> value_numbers(const StepJson& j, int32_t limit) {
  std::vector<int32_t> list;
  for (const StepJson& v : j) list.push_back(value_number(v, limit));
  return list;
}

Pull pull_of(const StepJson& j, int32_t limit) {
  Pull p;
  p.value = value_number(j.at("value"), limit);
  p.ids = value_number(j.at("ids"), limit, -1);
  p.dtype = static_cast<DType>(value_number(j.at("dtype"), kNumDTypes));
  for (const StepJson& d : j.at("shape")) {
    const auto n = d.get<int64_t>();
    if (n < 0 || p.shape.rank() == 8) {
      throw errors::InvalidArgument("a program names a shape that cannot be");
    }
    p.shape.insert(p.shape.rank(), n);
  }
  for (const StepJson& s : j.at("parts")) {
    Pull::Part part{s.at(0).get<int>(), s.at(1).get<std::string>(),
                    s.at(2).get<int64_t>(), s.at(3).get<int64_t>()};
    const int64_t rows = p.shape.rank() > 0 ? p.shape[0] : 1;
    if (part.begin < 0 || part.end < part.begin || part.end > rows) {
      throw errors::InvalidArgument("a program names rows that cannot be");
    }
    p.parts.push_back(std::move(part));
  }
  return p;
}

ServerPart server_part_of(const StepJson& j, int32_t limit) {
  ServerPart u;
  u.server = j.at("server").get<int>();
  u.hash = j.at("hash").get<std::string>();
  for (const StepJson& a : j.at("args")) {
    Push push;
    push.value = value_number(a.at(0), limit);
    push.cut = static_cast<Push::Cut>(value_number(a.at(1), 4));
    push.ids = value_number(a.at(2), limit, -1);
    push.begin = a.at(3).get<int64_t>();
    push.end = a.at(4).get<int64_t>();
    push.rows = a.at(5).get<int64_t>();
    const bool sparse = push.cut == Push::Cut::kSparseRows;
    if (push.begin < 0 || push.end < push.begin || (sparse && push.ids < 0)) {
      throw errors::InvalidArgument("a program pushes rows that cannot be");
    }
    u.args.push_back(push);
  }
  u.outs = value_numbers(j.at("outs"), limit);
  return u;
}

}  // namespace

cluster::Message encode_program(const StepProgram& program) {
  StepJson stages = StepJson::array();
  cluster::Message m;
  for (const StepStage& s : program.stages) {
    StepJson pulls = StepJson::array(), updates = StepJson::array();
    for (const Pull& p : s.pulls) pulls.push_back(pull_json(p));
    for (const ServerPart& u : s.updates) {
      updates.push_back(server_part_json(u));
    }
    stages.push_back({{"pulls", pulls},
                      {"text", s.worker.text},
                      {"args", s.worker.args},
                      {"outs", s.worker.outs},
                      {"updates", updates}});
    for (Tensor& t : blobs_of(s.worker.text)) {
      m.tensors.push_back(std::move(t));
    }
  }
  m.text = StepJson{
      {"hash", program.hash},
      {"num_args", program.num_args},
      {"num_values", program.num_values},
      {"results", program.results},
      {"stages",
       stages}}.dump();
  return m;
}

StepProgram decode_program(const cluster::Message& message) {
  constexpr int32_t kMostValues = 1 << 20;
  try {
    const StepJson j = StepJson::parse(message.text);
    StepProgram p;
    p.hash = j.at("hash").get<std::string>();
    p.num_values = value_number(j.at("num_values"), kMostValues);
    p.num_args = value_number(j.at("num_args"), p.num_values + 1);
    p.results = value_numbers(j.at("results"), p.num_values);
    for (const StepJson& s : j.at("stages")) {
      StepStage stage;
      for (const StepJson& pull : s.at("pulls")) {
        stage.pulls.push_back(pull_of(pull, p.num_values));
      }
      stage.worker.text = s.at("text").get<std::string>();
      stage.worker.args = value_numbers(s.at("args"), p.num_values);
      stage.worker.outs = value_numbers(s.at("outs"), p.num_values);
      for (const StepJson& u : s.at("updates")) {
        stage.updates.push_back(server_part_of(u, p.num_values));
      }
      p.stages.push_back(std::move(stage));
    }
    for (const Tensor& t : message.tensors) keep_blob(t);
    return p;
  } catch (const StepJson::exception& e) {
    throw errors::InvalidArgument(
        fmt::format("a program that cannot be read: {}", e.what()));
  }
}

}  // namespace berth::distribute
