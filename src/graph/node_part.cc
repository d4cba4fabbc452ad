#include "graph/node_part.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "graph/text_value.h"

namespace berth {

namespace {

constexpr int64_t kMostSlices = ThreadPool::kMaxChunks;  // of a fork
constexpr int64_t kMostSignatures = 1 << 16;

std::string out_of(const char* what, int64_t value, int64_t least,
                   int64_t most) {
  if (value >= least && value <= most) return "";
  return fmt::format("{} {}, expected one in [{}, {}]", what, value, least,
                     most);
}

}  // namespace

bool same_slices(const NodePart* a, const NodePart* b) {
  if (!has_slices(a) || !has_slices(b)) return has_slices(a) == has_slices(b);
  return a->first == b->first && a->count == b->count && a->total == b->total &&
         a->batch == b->batch;
}

int64_t examples_of(const NodePart& p) {
  return p.batch * (p.first + p.count) / p.total - p.batch * p.first / p.total;
}

int64_t slice_begin(const NodePart& p, int64_t length, int k) {
  const int64_t examples =
      p.batch * (p.first + k) / p.total - p.batch * p.first / p.total;
  return length * examples / examples_of(p);
}

bool can_cut_slices(const NodePart& p, int64_t length) {
  const int64_t examples = examples_of(p);
  if (length % examples == 0) return true;
  // Groups of examples: when each slice has whole ones.
  return p.batch % p.total == 0 && length * (p.batch / p.total) % examples == 0;
}

double whole_over_part(const NodePart* part) {
  if (!has_slices(part)) return 1;
  return static_cast<double>(part->batch) /
         static_cast<double>(examples_of(*part));
}

std::shared_ptr<const NodePart> slices_of(
    const std::shared_ptr<const NodePart>& part) {
  if (!has_slices(part.get())) return nullptr;
  NodePart p;
  p.first = part->first;
  p.count = part->count;
  p.total = part->total;
  p.batch = part->batch;
  if (p == *part) return part;
  return std::make_shared<const NodePart>(p);
}

std::optional<SplitSignature> signature_of(const Graph& graph,
                                           const Node& node) {
  if (!node.part || node.part->signature < 0 || !node.op->split()) return {};
  std::vector<SpecView> in;
  for (const ValueRef& v : node.inputs) in.push_back(graph.spec(v).view());
  std::vector<OutSpec> out = node.outputs;
  auto rules =
      node.op->split()(InferContext(*node.op, node.attrs.get(), in, out));
  const auto i = static_cast<size_t>(node.part->signature);
  if (i >= rules.size()) return {};
  return std::move(rules[i]);
}

bool adds_parts(const Graph& graph, const Node& node) {
  const auto split = signature_of(graph, node);
  return split &&
         std::find(split->outputs.begin(), split->outputs.end(),
                   SplitSignature::kPartialSum) != split->outputs.end();
}

std::string why_no_part(const NodePart& p) {
  std::string why = out_of("signature", p.signature, -1, kMostSignatures);
  if (why.empty()) why = out_of("origin", p.origin, 0, kMaxTextElements);
  if (p.total == 0) {
    if (why.empty() && (p.first != 0 || p.count != 0 || p.batch != 0)) {
      why = fmt::format("slices {} to {} of 0, expected none", p.first,
                        p.first + p.count);
    }
    return why;
  }
  if (why.empty()) why = out_of("total of slices", p.total, 1, kMostSlices);
  if (why.empty()) why = out_of("first slice", p.first, 0, p.total - 1);
  if (why.empty()) {
    why = out_of("end of the slices", int64_t{p.first} + p.count, p.first + 1,
                 p.total);
  }
  if (why.empty()) why = out_of("batch", p.batch, p.total, kMaxTextElements);
  return why;
}

void append_part(std::string& out, const NodePart& p) {
  fmt::format_to(std::back_inserter(out), "{}", p.signature);
  if (p.unsplit.rank() > 0) {
    out += " of ";
    append_shape(out, p.unsplit);
  }
  if (p.origin != 0) {
    fmt::format_to(std::back_inserter(out), " origin {}", p.origin);
  }
  if (p.total != 0) {
    fmt::format_to(std::back_inserter(out), " slices {} to {} of {} batch {}",
                   p.first, p.first + p.count, p.total, p.batch);
  }
}

namespace {

// A number of a part that fits an int32.
int32_t small(TextLine& line, const char* what, int64_t least, int64_t most) {
  const int64_t value = line.integer(what);
  const std::string why = out_of(what, value, least, most);
  if (!why.empty()) line.fail(why);
  return static_cast<int32_t>(value);
}

}  // namespace

NodePart parse_part(TextLine& line) {
  NodePart p;
  p.signature = small(line, "signature", -1, kMostSignatures);
  if (line.take_word("of")) {
    p.unsplit = parse_shape(line);
    if (p.unsplit.rank() == 0) {
      line.fail("shape [], expected at least one dimension");
    }
  }
  if (line.take_word("origin")) {
    p.origin = line.integer("origin");
    const std::string why = out_of("origin", p.origin, 0, kMaxTextElements);
    if (!why.empty()) line.fail(why);
  }
  if (!line.take_word("slices")) return p;
  p.first = small(line, "first slice", 0, kMostSlices);
  if (!line.take_word("to")) line.fail_here("'to' and the end of the slices");
  const int32_t end =
      small(line, "end of the slices", p.first + 1, kMostSlices);
  p.count = end - p.first;
  if (!line.take_word("of")) line.fail_here("'of' and the total of slices");
  p.total = small(line, "total of slices", end, kMostSlices);
  if (!line.take_word("batch")) line.fail_here("'batch' and its examples");
  p.batch = line.integer("batch");
  const std::string why = out_of("batch", p.batch, p.total, kMaxTextElements);
  if (!why.empty()) line.fail(why);
  return p;
}

}  // namespace berth
