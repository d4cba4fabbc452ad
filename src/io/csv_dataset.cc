// CsvDataset.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/pass_state.h"
#include "io/csv_node.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

using data::ElementStream;
using data::PassInfo;

constexpr int64_t kMostColumns = 1 << 20;

bool csv_dtype(DType dtype) {
  return dtype == float32 || dtype == float64 || is_integer(dtype) ||
         dtype == bool_ || dtype == string_;
}

// The columns of a batch that is being read.
class CsvColumns : public CsvSink {
 public:
  explicit CsvColumns(const CsvFormat& format)
      : numbers_(format.fields.size()),
        data_(format.fields.size()),
        texts_(format.fields.size()),
        format_(format) {}

  void start(size_t rows) {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const DType dtype = format_.fields[i].dtype;
      texts_[i].clear();
      if (dtype == string_) continue;
      numbers_[i] = data::make_batch(dtype, Shape{static_cast<int64_t>(rows)});
      data_[i] = numbers_[i].impl()->data();
    }
  }
  void* number(size_t field, size_t row) override {
    return data_[field] + row * size_of(format_.fields[field].dtype);
  }
  void text(size_t field, std::string_view value) override {
    texts_[field].add(value);
  }
  void rewind(size_t row) override {
    for (TextColumn& t : texts_) t.truncate(row);
  }
  // Moves `rows` rows out; as scalars if `single`.
  void finish(size_t rows, bool single, Tensors* out) {
    const Shape shape = single ? Shape{} : Shape{static_cast<int64_t>(rows)};
    out->resize(numbers_.size());
    for (size_t i = 0; i < numbers_.size(); ++i) {
      Tensor& to = (*out)[i];
      if (format_.fields[i].dtype == string_) {
        to = texts_[i].tensor(shape);
      } else if (single || numbers_[i].shape() != shape) {
        to = make_alias(numbers_[i], shape);
      } else {
        to = std::move(numbers_[i]);
      }
      numbers_[i] = Tensor();
    }
  }

 private:
  Tensors numbers_;
  std::vector<std::byte*> data_;
  std::vector<TextColumn> texts_;
  const CsvFormat& format_;
};

class CsvStream : public ElementStream {
 public:
  // size 0: single rows.
  CsvStream(const CsvNode* node, const PassInfo& pass, size_t size,
            bool drop_remainder)
      : node_(node),
        cursor_(node, pass),
        rows_(&node->format()),
        columns_(node->format()),
        size_(size),
        drop_remainder_(drop_remainder) {}

  bool next(Tensors* out) override {
    const size_t wanted = size_ == 0 ? 1 : size_;
    columns_.start(wanted);
    size_t n = 0;
    while (n < wanted && add(n)) ++n;
    if (n == 0 || (n < wanted && (drop_remainder_ || cursor_.stopped()))) {
      return false;
    }
    columns_.finish(n, size_ == 0, out);
    return true;
  }

  void save(data::PassWriter& w) override {
    w.begin(*node_);
    w.put(rows_.line());
    cursor_.save(w);
  }
  void restore(data::PassReader& r) override {
    r.begin(*node_);
    rows_.set_line(r.number(1));
    cursor_.restore(r);
  }

 private:
  bool add(size_t row) {
    try {
      for (;;) {
        if (cursor_.reader() == nullptr) {
          if (!cursor_.open_next()) return false;
          rows_.begin(cursor_.reader(), node_->header());
        }
        if (rows_.next(cursor_.reader(), row, &columns_)) return true;
        cursor_.close();
      }
    } catch (const errors::Error& e) {
      // The row is left out, if it is a row.
      if (e.code() != errors::Code::kInvalidArgument ||
          cursor_.reader() == nullptr || !rows_.skip_line(cursor_.reader())) {
        cursor_.close();
      }
      columns_.rewind(row);
      raise_of(*node_, e);
    }
  }

  const CsvNode* node_;
  FileCursor cursor_;
  CsvReader rows_;
  CsvColumns columns_;
  size_t size_;
  bool drop_remainder_;
};

CsvField field_of(const data::CsvColumn& column, const std::string& where,
                  size_t number) {
  if (!csv_dtype(column.dtype)) {
    data::refuse(where, fmt::format("column {} is to be {}; expected float32, "
                                    "float64, int32, int64, uint8, int8, bool "
                                    "or string",
                                    number, name_of(column.dtype)));
  }
  CsvField field{.dtype = column.dtype};
  if (!column.default_value.defined()) return field;
  const Tensor& t = column.default_value;
  check_values(t, where);
  if (t.num_elements() != 1) {
    data::refuse(where,
                 fmt::format("the default of column {} is {}; expected one "
                             "element",
                             number, t.spec().str()));
  }
  field.required = false;
  if (t.dtype() == string_) {
    field.text = string_at(t.impl()->data(), 1, 0);
  } else {
    t.copy_to(&field.number_bits);
  }
  return field;
}

}  // namespace

CsvNode::CsvNode(const char* what, Site site, data::FileNames files,
                 const std::vector<data::CsvColumn>& columns,
                 const data::CsvOptions& o,
                 const std::vector<std::string>& names)
    : FileNode(what, site, std::move(files), o.compression_type,
               o.max_record_bytes),
      header_(o.header) {
  if (columns.empty()) {
    data::refuse(where(),
                 "no record_defaults were given; expected one per "
                 "column");
  }
  if (o.field_delim == '"' || o.field_delim == '\n' || o.field_delim == '\r') {
    data::refuse(where(),
                 "field_delim is a quote or an end of line; expected "
                 "another character, such as ',' or '\\t'");
  }
  double ignored;
  format_.delim = o.field_delim;
  format_.quotes = o.use_quote_delim;
  format_.na_value = o.na_value;
  format_.na_is_number = parse_csv_number(o.na_value, float64, &ignored);
  for (size_t i = 0; i < columns.size(); ++i) {
    format_.fields.push_back(field_of(columns[i], where(), i));
    if (i < names.size()) format_.fields.back().name = names[i];
    specs_.push_back({Shape{}, columns[i].dtype, {}});
  }
  if (!names.empty()) names_ = std::make_shared<const data::Names>(names);
  select(columns.size(), o);
}

void CsvNode::select(size_t fields, const data::CsvOptions& o) {
  const std::vector<int64_t>& listed =
      o.select_cols.empty() ? o.exclude_cols : o.select_cols;
  const auto ascending = [](int64_t a, int64_t b) { return a >= b; };
  const bool wrong =
      (!o.select_cols.empty() && !o.exclude_cols.empty()) ||
      std::ranges::adjacent_find(listed, ascending) != listed.end() ||
      (!listed.empty() &&
       (listed.front() < 0 || listed.back() >= kMostColumns)) ||
      (!o.select_cols.empty() && o.select_cols.size() != fields);
  if (wrong) {
    data::refuse(where(),
                 fmt::format("select_cols [{}], exclude_cols [{}] for {} "
                             "record_defaults; expected ascending numbers from "
                             "0 in one of them, and as many select_cols as "
                             "record_defaults",
                             fmt::join(o.select_cols, ", "),
                             fmt::join(o.exclude_cols, ", "), fields));
  }
  if (listed.empty()) {
    for (size_t i = 0; i < fields; ++i) {
      format_.columns.push_back(static_cast<int>(i));
    }
    return;
  }
  format_.open_ended = !o.select_cols.empty();
  int next = 0;
  for (int64_t column = 0;; ++column) {
    const bool in_list = std::ranges::binary_search(listed, column);
    const bool used = in_list == !o.select_cols.empty();
    if (used && next == static_cast<int>(fields)) break;
    format_.columns.push_back(used ? next++ : -1);
    if (next == static_cast<int>(fields) && column >= listed.back()) break;
  }
}

std::unique_ptr<ElementStream> CsvNode::elements(const PassInfo& pass) const {
  return std::make_unique<CsvStream>(this, pass, 0, false);
}

std::unique_ptr<ElementStream> CsvNode::batches(const PassInfo& pass,
                                                size_t size,
                                                bool drop_remainder) const {
  return std::make_unique<CsvStream>(this, pass, size, drop_remainder);
}

}  // namespace berth::io

namespace berth::data {

CsvColumn::CsvColumn(const Tensor& value)
    : dtype(value.defined() ? value.dtype() : DType::kInvalid),
      default_value(value) {}

CsvDataset::CsvDataset(FileNames filenames,
                       std::vector<CsvColumn> record_defaults,
                       const CsvOptions& options, Site site)
    : Dataset(make_dataset<io::CsvNode>(
          "CsvDataset", site, std::move(filenames), record_defaults, options)) {
}

}  // namespace berth::data
