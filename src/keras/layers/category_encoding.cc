// CategoryEncoding: indices as one-hot, multi-hot or counted rows.

#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class CategoryEncodingBase final : public LayerBase {
 public:
  CategoryEncodingBase(int64_t tokens, const CategoryEncodingOptions& o,
                       Site site)
      : LayerBase("CategoryEncoding", o.name, site),
        tokens_(tokens),
        mode_(category_mode_of(state(), o.output_mode, false)) {
    check_positive(state(), "num_tokens", tokens_);
    if (mode_ == CategoryMode::kInt) {
      fail(
          "CategoryEncoding: output_mode is \"int\"; expected one_hot, "
          "multi_hot or count");
    }
  }
  Tensors call(const Tensors& x, bool) override {
    if (x.size() > 2 || (x.size() == 2 && mode_ != CategoryMode::kCount)) {
      fail_in(state(),
              "CategoryEncoding: got {} inputs; expected 1, or weights "
              "too in mode \"count\"",
              x.size());
    }
    return {encoded(math::cast(x[0], int64, site()), mode_, tokens_,
                    x.size() > 1 ? x[1] : Tensor(), {}, site())};
  }

 private:
  const int64_t tokens_;
  const CategoryMode mode_;
};
void category_encoding_fields(Fields& f, int64_t& num_tokens,
                              CategoryEncodingOptions& o) {
  f.must("num_tokens", num_tokens);
  f("output_mode", o.output_mode);
}

}  // namespace

CategoryEncoding::CategoryEncoding(int64_t num_tokens,
                                   CategoryEncodingOptions o, Site site)
    : Layer(described<CategoryEncodingBase, category_encoding_fields>(
          site, num_tokens, std::move(o))) {}

void add_category_encoding_classes(Classes& c) {
  c.layers["CategoryEncoding"] =
      &layer_of<CategoryEncoding, category_encoding_fields>;
}

}  // namespace berth::keras
