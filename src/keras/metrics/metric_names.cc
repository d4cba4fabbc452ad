// The table of metrics by name.

#include "keras/metrics/metric_names.h"

#include <fmt/format.h>

#include <utility>

#include "berth/errors.h"
#include "keras/config/custom_objects.h"

namespace berth::keras {

Metric chosen_accuracy_metric(const std::string& name);

namespace {

using MakeMetric = Metric (*)(const std::string& name);

template <class Options, Metric (*kMake)(Options)>
Metric named(const std::string& name) {
  Options o;
  o.name = name;
  return kMake(o);
}

using namespace metrics;
#define PLAIN(NAME) &named<MetricOptions, &NAME>

// What training prints is the name that was asked for.
constexpr std::pair<const char*, MakeMetric> kMetrics[] = {
    {"accuracy", &chosen_accuracy_metric},
    {"acc", &chosen_accuracy_metric},
    {"binary_accuracy", &named<BinaryAccuracyOptions, &BinaryAccuracy>},
    {"categorical_accuracy", PLAIN(CategoricalAccuracy)},
    {"sparse_categorical_accuracy", PLAIN(SparseCategoricalAccuracy)},
    {"top_k_categorical_accuracy",
     &named<TopKOptions, &TopKCategoricalAccuracy>},
    {"sparse_top_k_categorical_accuracy",
     &named<TopKOptions, &SparseTopKCategoricalAccuracy>},
    {"mse", PLAIN(MeanSquaredError)},
    {"mean_squared_error", PLAIN(MeanSquaredError)},
    {"root_mean_squared_error", PLAIN(RootMeanSquaredError)},
    {"rmse", PLAIN(RootMeanSquaredError)},
    {"mae", PLAIN(MeanAbsoluteError)},
    {"mean_absolute_error", PLAIN(MeanAbsoluteError)},
    {"mape", PLAIN(MeanAbsolutePercentageError)},
    {"mean_absolute_percentage_error", PLAIN(MeanAbsolutePercentageError)},
    {"msle", PLAIN(MeanSquaredLogarithmicError)},
    {"mean_squared_logarithmic_error", PLAIN(MeanSquaredLogarithmicError)},
    {"log_cosh", PLAIN(LogCoshError)},
    {"logcosh", PLAIN(LogCoshError)},
    {"poisson", PLAIN(Poisson)},
    {"kl_divergence", PLAIN(KLDivergence)},
    {"kld", PLAIN(KLDivergence)},
    {"hinge", PLAIN(Hinge)},
    {"squared_hinge", PLAIN(SquaredHinge)},
    {"categorical_hinge", PLAIN(CategoricalHinge)},
    {"binary_crossentropy",
     &named<CrossentropyMetricOptions, &BinaryCrossentropy>},
    {"bce", &named<CrossentropyMetricOptions, &BinaryCrossentropy>},
    {"categorical_crossentropy",
     &named<CrossentropyMetricOptions, &CategoricalCrossentropy>},
    {"sparse_categorical_crossentropy",
     &named<CrossentropyMetricOptions, &SparseCategoricalCrossentropy>},
    {"cosine_similarity", &named<AxisOptions, &CosineSimilarity>},
    {"pearson_correlation", &named<AxisOptions, &PearsonCorrelation>},
    {"concordance_correlation", &named<AxisOptions, &ConcordanceCorrelation>},
    {"r2_score", &named<R2ScoreOptions, &R2Score>},
    {"true_positives", &named<ConfusionOptions, &TruePositives>},
    {"true_negatives", &named<ConfusionOptions, &TrueNegatives>},
    {"false_positives", &named<ConfusionOptions, &FalsePositives>},
    {"false_negatives", &named<ConfusionOptions, &FalseNegatives>},
    {"precision", &named<PrecisionOptions, &Precision>},
    {"recall", &named<PrecisionOptions, &Recall>},
    {"auc", &named<AUCOptions, &AUC>},
    {"AUC", &named<AUCOptions, &AUC>},
    {"f1_score", &named<F1ScoreOptions, &F1Score>},
    {"fbeta_score", &named<FBetaScoreOptions, &FBetaScore>},
    {"binary_io_u", &named<BinaryIoUOptions, &BinaryIoU>},
};
#undef PLAIN

}  // namespace

Metric metric_by_name(const std::string& name) {
  for (const auto& [known, make] : kMetrics) {
    if (name == known) return make(name);
  }
  if (const MetricFactory own = find_custom_object(name).metric) {
    return own(Config());
  }
  std::string all;
  for (const auto& [known, make] : kMetrics) {
    all += fmt::format("{}{}", all.empty() ? "" : ", ", known);
  }
  throw errors::InvalidArgument(
      fmt::format("there is no metric \"{}\"; expected one of {}", name, all));
}

}  // namespace berth::keras
