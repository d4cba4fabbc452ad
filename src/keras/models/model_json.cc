// Model::to_json and model_from_json.

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/models.h"

namespace berth::keras {

std::string Model::to_json(int indent) const {
  return layers::serialize(*this).str(indent);
}

Model model_from_json(const std::string& json, Site site) {
  const Config config = Config::parse(json, site);
  if (config.kind() != Config::Kind::kObject) {
    throw errors::InvalidArgument(fmt::format(
        "model_from_json{}: the text is {}; expected the object that to_json() "
        "writes",
        where_text(nullptr, site), config.str().substr(0, 60)));
  }
  return Model(layers::deserialize(config, site).base());
}

Model clone_model(const Model& model, Site site) {
  return Model(layers::deserialize(layers::serialize(model), site).base());
}

}  // namespace berth::keras
