// data_files: datasets that read files (tf.data.TFRecordDataset, ...).
//
// No file is opened before an iterator is made. Files are read one after the
// other in windows, so memory depends on the longest record, not on the file.
// Batched at once (`TFRecordDataset(files).batch(64)`), records and rows go
// directly into the batch:
//   auto lines = data::TextLineDataset("poem.txt").batch(32);
//   data::CsvDataset rows({"a.csv", "b.csv"},
//                         {float32, constant(0.5f), string_},
//                         {.header = true});
// next() throws errors of a file: errors::NotFound, PermissionDenied,
// Unavailable, DataLoss (damage), InvalidArgument (another format),
// ResourceExhausted (a record above max_record_bytes), each with the file, the
// position in it and the line that made the dataset.
// Thread-safe: datasets are immutable value handles.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_DATA_FILES_H_
#define BERTH_DATA_FILES_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "berth/data.h"

namespace berth::data {

// Names of files, known now or elements of a dataset (scalar strings).
class FileNames {
 public:
  FileNames(const char* name) : names_{name} {}             // NOLINT
  FileNames(std::string name) : names_{std::move(name)} {}  // NOLINT
  FileNames(std::vector<std::string> names)                 // NOLINT
      : names_(std::move(names)) {}
  FileNames(std::initializer_list<std::string> names) : names_(names) {}
  FileNames(Dataset names) : dataset_(std::move(names)) {}  // NOLINT

  const std::vector<std::string>& names() const { return names_; }
  const std::optional<Dataset>& dataset() const { return dataset_; }

 private:
  std::vector<std::string> names_;
  std::optional<Dataset> dataset_;
};

struct FileOptions {
  // "", "GZIP" or "ZLIB".
  std::string compression_type = {};
  // A longer record is an error: neither damage nor a small file that inflates
  // to a large one can fill the memory.
  int64_t max_record_bytes = int64_t{1} << 28;
  // Files read at once, each on its own thread, a record of each in turn; 0, 1:
  // one file after the other; AUTOTUNE: as interleave() chooses.
  int64_t num_parallel_reads = 0;
};

// Records of TFRecord files: scalar strings. Both checksums are verified.
class TFRecordDataset : public Dataset {
 public:
  explicit TFRecordDataset(FileNames filenames, const FileOptions& options = {},
                           Site site = Site::here());
};

// Lines without their end ("\n" or "\r\n"): scalar strings.
class TextLineDataset : public Dataset {
 public:
  explicit TextLineDataset(FileNames filenames, const FileOptions& options = {},
                           Site site = Site::here());
};

struct FixedLengthOptions {
  int64_t header_bytes = 0;  // skipped at the start of each file
  int64_t footer_bytes = 0;  // skipped at its end
  std::string compression_type = {};
  int64_t num_parallel_reads = 0;  // as in FileOptions
};

// Records of `record_bytes` bytes: scalar strings, for io::decode_raw. A file
// with an incomplete last record is an error.
class FixedLengthRecordDataset : public Dataset {
 public:
  FixedLengthRecordDataset(FileNames filenames, int64_t record_bytes,
                           const FixedLengthOptions& options = {},
                           Site site = Site::here());
};

// One row of each IDX file (MNIST's format), plain or gzip: component i comes
// from file i. The files are read now. Throws
// errors::InvalidArgument unless all have the same number of rows.
class IdxDataset : public Dataset {
 public:
  explicit IdxDataset(const std::vector<std::string>& filenames,
                      Site site = Site::here());
};

// A column of a CSV file: its dtype, and what an empty field stands for.
// float32, float64, integers, bool_ and string_.
struct CsvColumn {
  CsvColumn(DType dtype) : dtype(dtype) {}  // NOLINT: must not be empty
  CsvColumn(const Tensor& default_value);   // NOLINT: one element

  DType dtype;
  Tensor default_value;
};

struct CsvOptions {
  std::string compression_type = {};
  bool header = false;  // the first line of each file is skipped
  char field_delim = ',';
  bool use_quote_delim = true;  // "a ""quoted"" field, with commas"
  std::string na_value = {};    // treated like an empty field
  // The columns that record_defaults describe, ascending; empty: all.
  std::vector<int64_t> select_cols = {};
  // Or those that they do not describe (not both).
  std::vector<int64_t> exclude_cols = {};
  int64_t max_record_bytes = int64_t{1} << 24;  // of a row
};

// Rows of CSV files (RFC 4180): one scalar per column. Empty lines are skipped,
// except in files with one column. Throws errors::InvalidArgument for invalid
// columns and options; next() throws it, naming line and column, for fields
// that are not numbers of the dtype and rows of another length.
class CsvDataset : public Dataset {
 public:
  CsvDataset(FileNames filenames, std::vector<CsvColumn> record_defaults,
             const CsvOptions& options = {}, Site site = Site::here());
};

struct MakeCsvOptions {
  std::vector<std::string> column_names = {};    // empty: the header's
  std::vector<CsvColumn> column_defaults = {};   // empty: inferred
  std::string label_name = {};                   // goes last
  std::vector<std::string> select_columns = {};  // empty: all
  char field_delim = ',';
  bool use_quote_delim = true;
  std::string na_value = {};
  bool header = true;
  int64_t num_epochs = -1;  // passes over the files; -1: for ever
  bool shuffle = true;
  int64_t shuffle_buffer_size = 10'000;
  std::optional<uint64_t> shuffle_seed = std::nullopt;
  int64_t prefetch_buffer_size = AUTOTUNE;
  int64_t num_rows_for_inference = 100;  // of the first file; 0: all
  std::string compression_type = {};
  int64_t num_parallel_reads = 1;  // as in FileOptions
};

// Batches of CSV files with a header (tf.data.experimental.make_csv_dataset):
// components are the columns in their order in the file, the label last, and
// have their names: element["age"]. Columns without defaults get the first
// dtype that fits the first rows: int32, int64, float32, float64, string_;
// their empty fields are 0 or "".
struct CsvBatches {
  Dataset dataset;
  std::vector<std::string> names;  // of its components
};
CsvBatches make_csv_dataset(const std::vector<std::string>& file_patterns,
                            int64_t batch_size,
                            const MakeCsvOptions& options = {},
                            Site site = Site::here());

struct ListFilesOptions {
  bool shuffle = true;  // again in each iteration
  std::optional<uint64_t> seed = std::nullopt;
};

// The names of the files that match any of `file_patterns` (shell patterns: *,
// ?, [a-z]), as scalar strings, shuffled or sorted. The patterns are expanded
// now. Throws errors::NotFound if a pattern matches nothing.
Dataset list_files(const std::vector<std::string>& file_patterns,
                   const ListFilesOptions& options = {},
                   Site site = Site::here());

}  // namespace berth::data

#endif  // BERTH_DATA_FILES_H_
