// Metrics by name.

#ifndef BERTH_KERAS_METRICS_METRIC_NAMES_H_
#define BERTH_KERAS_METRICS_METRIC_NAMES_H_

#include <memory>
#include <string>
#include <utility>

#include "berth/keras/metrics.h"
#include "keras/config/fields.h"

namespace berth::keras {

// Throws errors::InvalidArgument for a name that does not exist.
Metric metric_by_name(const std::string& name);

// `given`, or `usual` where it is empty.
std::string metric_name(const std::string& given, const char* usual);

// Fields of a metric made of options: besides the name they are what
// metric_fields(Fields&, Options&) lists.
template <class Options>
struct MetricArgs {
  Options o;
  void fields(Fields& f) {
    f("name", o.name);
    metric_fields(f, o);
  }
};

void metric_fields(Fields& f, metrics::MetricOptions& o);

// Reads the options and makes the metric by kMake, the public function.
template <class Options, Metric (*kMake)(Options)>
Metric metric_of(Fields& f) {
  MetricArgs<Options> args;
  args.fields(f);
  f.done();
  return kMake(args.o);
}

// The metric of `base`, which is made of `o`.
template <class Options>
Metric described_metric(const char* class_name,
                        std::shared_ptr<MetricBase> base, Options o) {
  base->description =
      description(class_name, MetricArgs<Options>{std::move(o)});
  return Metric(std::move(base));
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_METRICS_METRIC_NAMES_H_
