// berth run: calls a saved function with arguments from a file or random ones.

#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "berth/saved_function.h"
#include "cli/commands.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"

namespace berth::cli {

namespace {

struct RunArguments {
  std::string file, inputs, outputs;
  int64_t batch = 1;
  int64_t seed = 0;
};

// Draws random numbers; dimensions of any length get the batch size.
Tensor drawn_argument(const TensorSpec& spec, const RunArguments& o,
                      size_t index) {
  std::vector<int64_t> dims;
  for (const int64_t d : spec.shape) dims.push_back(d < 0 ? o.batch : d);
  const Shape shape{std::span<const int64_t>(dims)};
  const auto seed = o.seed + static_cast<int64_t>(index);
  if (spec.dtype == float32 || spec.dtype == float64) {
    return random::stateless_uniform(shape, {seed, 1}, {.dtype = spec.dtype});
  }
  if (spec.dtype == string_) {
    throw UsageError(
        fmt::format("run: argument {} is {}; expected --inputs with its values",
                    index, spec.str()));
  }
  return zeros(shape, spec.dtype);
}

// Takes tensors "0", "1", ... from a file and draws missing ones.
Tensors arguments_of(const ConcreteFunction& f, const RunArguments& o) {
  std::unique_ptr<io::SafetensorsFile> file;
  if (!o.inputs.empty()) {
    file = std::make_unique<io::SafetensorsFile>(o.inputs, "run: --inputs");
  }
  Tensors args;
  for (const TensorSpec& spec : f.input_specs()) {
    const int i = file ? file->find(std::to_string(args.size())) : -1;
    args.push_back(i < 0 ? drawn_argument(spec, o, args.size())
                         : file->tensor(i));
  }
  return args;
}

void run_function(const RunArguments& o) {
  if (o.batch < 1) throw UsageError("run: --batch must be at least 1");
  const ConcreteFunction f = load_function(o.file);
  const Tensors results = f(arguments_of(f, o));
  std::ostringstream out;
  for (size_t i = 0; i < results.size(); ++i) {
    out << i << ": " << results[i].spec().str() << " " << results[i] << "\n";
  }
  std::fputs(out.str().c_str(), stdout);
  if (o.outputs.empty()) return;
  std::vector<io::TensorToWrite> list;
  for (size_t i = 0; i < results.size(); ++i) {
    list.push_back({std::to_string(i), results[i]});
  }
  io::write_safetensors(o.outputs, std::move(list), {}, "run: --outputs");
}

}  // namespace

void add_run(CLI::App& program) {
  auto o = std::make_shared<RunArguments>();
  CLI::App* run = program.add_subcommand(
      "run", "Runs a function that ConcreteFunction::save() wrote");
  run->add_option("file", o->file, "the safetensors file")->required();
  run->add_option("--inputs", o->inputs,
                  "a safetensors file with the arguments \"0\", \"1\", ...; "
                  "else floats are drawn, other numbers are 0");
  run->add_option("--outputs", o->outputs,
                  "writes the results there, as \"0\", \"1\", ...");
  run->add_option("--batch", o->batch,
                  "the length of drawn dimensions that may have any")
      ->capture_default_str();
  run->add_option("--seed", o->seed, "of what is drawn")->capture_default_str();
  run->callback([o] { run_function(*o); });
}

}  // namespace berth::cli
