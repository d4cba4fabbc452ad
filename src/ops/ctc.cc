// Connectionist temporal classification: the loss and two decoders.

#include "berth/ops/ctc.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace nn {

namespace {

Tensor time_major(const Tensor& x, bool already, Site site) {
  return already || x.rank() != 3 ? x : transpose(x, {1, 0, 2}, site);
}

void check_inputs(const char* what, const Tensor& inputs,
                  const Tensor& lengths) {
  if (inputs.rank() == 3 && lengths.rank() == 1) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: inputs are {}, lengths {}{}; expected [time, batch, classes] and "
      "[batch]",
      what, inputs.shape().str(), lengths.shape().str(), where_text()));
}

}  // namespace

Tensor ctc_loss(const Tensor& labels, const Tensor& logits,
                const Tensor& label_length, const Tensor& logit_length,
                const CtcLossOptions& o, Site site) {
  set_site(site);
  const Tensor major = time_major(logits, o.logits_time_major, site);
  const auto whole = [&](const Tensor& t) {
    return t.dtype() == int64 ? t : math::cast(t, int64, site);
  };
  const Tensor ids = whole(labels), sizes = whole(label_length),
               times = whole(logit_length);
  return call_many(op_of<"CTCLoss">(), {&major, &ids, &sizes, &times},
                   AttrsRef({{"blank_index", o.blank_index}}).get())[0];
}

// What is kept goes to the place that counts what was kept before it.
CtcGreedy ctc_greedy_labels(const Tensor& inputs, const Tensor& sequence_length,
                            const CtcGreedyOptions& o, Site site) {
  set_site(site);
  check_inputs("ctc_greedy_labels", inputs, sequence_length);
  const int64_t time = inputs.shape()[0], batch = inputs.shape()[1],
                classes = inputs.shape()[2];
  if (time < 0 || batch < 0 || classes < 1) {
    throw errors::InvalidArgument(
        fmt::format("ctc_greedy_labels: inputs are {}{}; expected known "
                    "dimensions and a class",
                    inputs.shape().str(), where_text()));
  }
  const int64_t blank = o.blank_index + (o.blank_index < 0 ? classes : 0);
  const Tensor rows = transpose(inputs, {1, 0, 2}, site);
  const Tensor ids = math::argmax(rows, {.axis = 2}, site);  // [batch, time]
  const Tensor inside = math::less(
      range(0, time, 1, int64, site),
      expand_dims(math::cast(sequence_length, int64, site), 1, site), site);
  Tensor kept = math::logical_and(
      inside,
      math::not_equal(ids, scalar_like(ids, static_cast<double>(blank)), site),
      site);
  if (o.merge_repeated && time > 0) {
    const Tensor before = pad(slice(ids, {0, 0}, {-1, time - 1}, site),
                              {0, 0, 1, 0}, {.constant_values = -1}, site);
    kept = math::logical_and(kept, math::not_equal(ids, before, site), site);
  }
  const Tensor counted =
      math::cumsum(math::cast(kept, int64, site), {.axis = 1}, site);
  const Tensor last = fill(Shape{}, static_cast<double>(time), int64, site);
  const Tensor place =
      where(kept, counted - scalar_like(counted, 1), last, site);
  // One column more takes what is dropped; labels are counted from -1.
  const Tensor row =
      broadcast_to(expand_dims(range(0, batch, 1, int64, site), 1, site),
                   {batch, time}, site);
  const Tensor target = stack({row, place}, 2, site);
  const Tensor value =
      where(kept, ids + scalar_like(ids, 1), scalar_like(ids, 0), site);
  const Tensor all = scatter_nd(target, value, Shape{batch, time + 1}, site);
  const Tensor best =
      math::reduce_max(rows, {.axis = std::vector<int64_t>{2}}, site);
  const Tensor sum = math::reduce_sum(
      where(inside, best, scalar_like(best, 0), site),
      {.axis = std::vector<int64_t>{1}, .keepdims = true}, site);
  return {slice(all, {0, 0}, {-1, time}, site) - scalar_like(all, 1), -sum};
}

CtcBeam ctc_beam_search_labels(const Tensor& inputs,
                               const Tensor& sequence_length,
                               const CtcBeamOptions& o, Site site) {
  set_site(site);
  const Tensor lengths = math::cast(sequence_length, int64, site);
  const Tensors r = call_many(
      op_of<"CTCBeamSearchDecoder">(), {&inputs, &lengths},
      AttrsRef({{"beam_width", o.beam_width}, {"top_paths", o.top_paths}})
          .get());
  return {r[0], r[1]};
}

}  // namespace nn

namespace {

void infer_ctc_loss(InferContext& c) {
  c.expect_rank(0, 3, "[time, batch, classes]");
  c.expect_rank(1, 2, "[batch, labels]");
  c.expect_rank(2, 1, "[batch]");
  c.expect_rank(3, 1, "[batch]");
  int64_t batch = c.shape(0)[1];
  for (int i = 1; i < 4; ++i) {
    batch = c.merge_dims(
        batch, c.shape(i)[0],
        fmt::format("logits are {}, labels {}, label_length {}, logit_length "
                    "{}; expected equal batches",
                    c.shape(0).str(), c.shape(1).str(), c.shape(2).str(),
                    c.shape(3).str()));
  }
  const int64_t blank = c.attr<int64_t>("blank_index"), n = c.shape(0)[2];
  if (n >= 0 && (blank < -n || blank >= n)) {
    c.fail(
        fmt::format("blank_index is {}; expected one of {} classes", blank, n));
  }
  c.set_output(0, c.dtype(0), Shape{batch});
  c.set_output(1, c.dtype(0), c.shape(0));
}

void infer_ctc_beam(InferContext& c) {
  c.expect_rank(0, 3, "[time, batch, classes]");
  c.expect_rank(1, 1, "[batch]");
  const int64_t width = c.attr<int64_t>("beam_width");
  const int64_t paths = c.attr<int64_t>("top_paths");
  if (paths < 1 || width < paths || c.shape(0)[2] == 0) {
    c.fail(
        fmt::format("beam_width is {}, top_paths {}, of {}; expected 1 to "
                    "beam_width paths and a class",
                    width, paths, c.shape(0).str()));
  }
  const int64_t batch =
      c.merge_dims(c.shape(0)[1], c.shape(1)[0],
                   fmt::format("inputs are {}, sequence_length {}",
                               c.shape(0).str(), c.shape(1).str()));
  c.set_output(0, int64, Shape{paths, batch, c.shape(0)[0]});
  c.set_output(1, c.dtype(0), Shape{batch, paths});
}

Cost cost_ctc(const InferContext& c) {
  Cost cost = cost_move(c);
  cost.flops = 50 * static_cast<double>(c.shape(0).num_elements());
  return cost;
}

}  // namespace

void register_ctc_ops(OpRegistry& r) {
  r.op("CTCLoss")
      .input("inputs", kFloatingTypes)
      .free_input("labels", dtype_bit(int64))
      .free_input("label_length", dtype_bit(int64))
      .free_input("logit_length", dtype_bit(int64))
      .output("loss")
      .output("gradient")
      .attr("blank_index", int64_t{0})
      .infer(&infer_ctc_loss)
      .cost(&cost_ctc)
      .split([](const InferContext&) {
        return std::vector<SplitSignature>{
            {{cut(1), cut(0), cut(0), cut(0)}, {cut(0), cut(1)}}};
      })
      .gradient([](const GradCall& g) {
        const Tensor dy = expand_dims(expand_dims(g.dy(), 0, {}), -1, {});
        return Tensors{dy * g.y(1), {}, {}, {}};
      })
      .doc("-log of the probability of the labels, and its gradient.");
  r.op("CTCBeamSearchDecoder")
      .input("inputs", kFloatingTypes)
      .free_input("sequence_length", dtype_bit(int64))
      .output("decoded")
      .output("log_probability")
      .attr("beam_width", int64_t{100})
      .attr("top_paths", int64_t{1})
      .infer(&infer_ctc_beam)
      .cost(&cost_ctc)
      .split([](const InferContext&) {
        return std::vector<SplitSignature>{
            {{cut(1), cut(0)}, {cut(1), cut(0)}}};
      })
      .not_differentiable()
      .doc("The most probable labels; the last class is the blank.");
}

}  // namespace berth
