// make_csv_dataset: names and dtypes found out, then the usual chain.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "berth/io.h"
#include "io/csv_node.h"
#include "io/text_input.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

using data::MakeCsvOptions;

struct CsvTable {
  std::vector<std::string> names;              // of all columns of the file
  std::vector<std::vector<std::string>> rows;  // the first ones
};

// Reads the names and the first rows.
CsvTable first_rows(const std::string& file, const MakeCsvOptions& o) {
  Compression compression;
  if (!parse_compression(o.compression_type, &compression)) {
    throw errors::InvalidArgument(fmt::format(
        "compression_type is \"{}\"; expected \"\", \"GZIP\" or \"ZLIB\"",
        o.compression_type));
  }
  const std::string title = fmt::format("\"{}\"", file);
  WindowReader reader(decompress(file_source(file), compression, title), title,
                      size_t{1} << 24);
  CsvFormat format;
  format.delim = o.field_delim;
  format.quotes = o.use_quote_delim;
  CsvReader rows(&format);
  rows.begin(&reader, false);
  CsvTable table;
  if (o.header && !rows.texts(&reader, &table.names)) {
    throw errors::InvalidArgument(title + " is empty; expected a header");
  }
  if (!o.column_names.empty()) {
    if (o.header && o.column_names.size() != table.names.size()) {
      throw errors::InvalidArgument(fmt::format(
          "{} has {} columns ({}), column_names {}; expected as many", title,
          table.names.size(), fmt::join(table.names, ", "),
          o.column_names.size()));
    }
    table.names = o.column_names;
  }
  if (table.names.empty()) {
    throw errors::InvalidArgument(
        "neither a header nor column_names; expected one of them");
  }
  if (!o.column_defaults.empty()) return table;
  std::vector<std::string> row;
  while ((o.num_rows_for_inference == 0 ||
          static_cast<int64_t>(table.rows.size()) < o.num_rows_for_inference) &&
         rows.texts(&reader, &row)) {
    if (row.size() == 1 && row[0].empty() && table.names.size() > 1) continue;
    if (row.size() != table.names.size()) {
      throw errors::InvalidArgument(
          fmt::format("{}, line {}: {} fields; expected {}", title,
                      rows.line() - 1, row.size(), table.names.size()));
    }
    table.rows.push_back(row);
  }
  return table;
}

// The first of int32, int64, float32, float64, string that fits.
int rank_of(const std::string& text) {
  int32_t i32;
  int64_t i64;
  double f64;
  if (parse_csv_number(text, int32, &i32)) return 0;
  if (parse_csv_number(text, int64, &i64)) return 1;
  if (!parse_csv_number(text, float64, &f64)) return 4;
  const double most = std::numeric_limits<float>::max();
  return std::isfinite(f64) && std::abs(f64) > most ? 3 : 2;
}

// A default of 0 or "".
data::CsvColumn zero_of(DType dtype) {
  if (dtype == string_) return text_tensor("");
  Tensor t = data::make_batch(dtype, Shape{});
  std::memset(t.impl()->data(), 0, size_of(dtype));
  return t;
}

data::CsvColumn inferred(const CsvTable& table, size_t column,
                         const std::string& na_value) {
  int rank = -1;
  for (const auto& row : table.rows) {
    if (row[column].empty() || row[column] == na_value) continue;
    rank = std::max(rank, rank_of(row[column]));
  }
  constexpr DType kDTypes[] = {int32, int64, float32, float64, string_};
  // Nothing but empty fields is text.
  return zero_of(rank < 0 ? string_ : kDTypes[rank]);
}

std::vector<std::string> files_of(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    const auto some = matching_files(pattern);
    if (some.empty()) {
      throw errors::NotFound(
          fmt::format("no file matches \"{}\"; check the folder", pattern));
    }
    files.insert(files.end(), some.begin(), some.end());
  }
  if (files.empty()) {
    throw errors::InvalidArgument("no file patterns; expected some");
  }
  return files;
}

// Numbers of the chosen columns in the file, ascending.
std::vector<int64_t> chosen_columns(const CsvTable& table,
                                    const MakeCsvOptions& o) {
  std::vector<int64_t> chosen;
  const auto add = [&](const std::string& name) {
    const auto at = std::ranges::find(table.names, name);
    if (at == table.names.end()) {
      throw errors::InvalidArgument(
          fmt::format("no column is called \"{}\"; expected one of {}", name,
                      fmt::join(table.names, ", ")));
    }
    chosen.push_back(at - table.names.begin());
  };
  for (const std::string& name : o.select_columns) add(name);
  if (chosen.empty()) {
    for (size_t i = 0; i < table.names.size(); ++i) {
      chosen.push_back(static_cast<int64_t>(i));
    }
  }
  std::ranges::sort(chosen);
  if (std::ranges::adjacent_find(chosen) != chosen.end()) {
    throw errors::InvalidArgument("a column is selected twice");
  }
  return chosen;
}

}  // namespace
}  // namespace berth::io

namespace berth::data {

namespace {

// Moves component `at` to the end; `names` are those of the result.
Dataset with_last(const Dataset& d, size_t at, NamesRef names, Site site) {
  if (at + 1 == names->size()) return d;
  return d.map(
      [at, names = std::move(names)](const Element& e) {
        Tensors out = e;
        std::rotate(out.begin() + static_cast<std::ptrdiff_t>(at),
                    out.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    out.end());
        return Element(std::move(out), names);
      },
      {}, site);
}

}  // namespace

CsvBatches make_csv_dataset(const std::vector<std::string>& file_patterns,
                            int64_t batch_size, const MakeCsvOptions& o,
                            Site site) {
  return io::named_call("make_csv_dataset", site, [&]() -> CsvBatches {
    const auto files = io::files_of(file_patterns);
    const io::CsvTable table = io::first_rows(files[0], o);
    const auto chosen = io::chosen_columns(table, o);
    if (!o.column_defaults.empty() &&
        o.column_defaults.size() != chosen.size()) {
      throw errors::InvalidArgument(
          fmt::format("{} column_defaults for {} columns; expected as many",
                      o.column_defaults.size(), chosen.size()));
    }
    std::vector<CsvColumn> columns;
    std::vector<std::string> names;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const auto column = static_cast<size_t>(chosen[i]);
      names.push_back(table.names[column]);
      columns.push_back(o.column_defaults.empty()
                            ? io::inferred(table, column, o.na_value)
                            : o.column_defaults[i]);
    }
    size_t label = names.size();
    if (!o.label_name.empty()) {
      label = static_cast<size_t>(std::ranges::find(names, o.label_name) -
                                  names.begin());
      if (label == names.size()) {
        throw errors::InvalidArgument(
            fmt::format("the label \"{}\" is no column; expected one of {}",
                        o.label_name, fmt::join(names, ", ")));
      }
    }
    CsvOptions options{.compression_type = o.compression_type,
                       .header = o.header,
                       .field_delim = o.field_delim,
                       .use_quote_delim = o.use_quote_delim,
                       .na_value = o.na_value};
    if (chosen.size() < table.names.size()) options.select_cols = chosen;
    const Dataset rows_of_files =
        io::read_in_parallel("make_csv_dataset", files, o.num_parallel_reads,
                             site, [=](FileNames some) {
                               return make_dataset<io::CsvNode>(
                                   "make_csv_dataset", site, std::move(some),
                                   columns, options, names);
                             });
    Dataset rows = rows_of_files;
    if (o.shuffle) {
      rows =
          rows.shuffle(o.shuffle_buffer_size, {.seed = o.shuffle_seed}, site);
    }
    if (o.num_epochs != 1) rows = rows.repeat(o.num_epochs, site);
    Dataset batches =
        rows.batch(batch_size, {.drop_remainder = o.num_epochs < 0}, site);
    if (label < names.size()) {
      std::rotate(names.begin() + static_cast<std::ptrdiff_t>(label),
                  names.begin() + static_cast<std::ptrdiff_t>(label) + 1,
                  names.end());
      batches =
          with_last(batches, label, std::make_shared<const Names>(names), site);
    }
    if (o.prefetch_buffer_size != 0) {
      batches = batches.prefetch(o.prefetch_buffer_size, site);
    }
    return {batches, names};
  });
}

}  // namespace berth::data
