// CsvReader: rows of a CSV file, parsed straight into columns.
//
// A row is read in one walk: numbers by from_chars where they stand, texts
// into the column's buffer. Fields follow RFC 4180. Not thread-safe.

#ifndef BERTH_IO_CSV_ROW_H_
#define BERTH_IO_CSV_ROW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/dtype.h"
#include "io/window_reader.h"

namespace berth::io {

// What a reader knows of a column; immutable.
struct CsvField {
  DType dtype = float32;
  bool required = true;
  std::string name;          // in messages
  uint64_t number_bits = 0;  // the default's bytes
  std::string text;          // the default of string_
};

struct CsvFormat {
  char delim = ',';
  bool quotes = true;
  std::string na_value;
  bool na_is_number = false;
  std::vector<CsvField> fields;
  // Column of the file -> index in fields, or -1; columns beyond are skipped
  // if `open_ended`, else refused.
  std::vector<int> columns;
  bool open_ended = false;
};

// Where a batch of rows goes: room for the numbers of a column, or a text
// sink.
class CsvSink {
 public:
  virtual ~CsvSink() = default;
  // The bytes of number `row` of field `field`.
  virtual void* number(size_t field, size_t row) = 0;
  virtual void text(size_t field, std::string_view value) = 0;
  // Forgets texts of rows from `row` on.
  virtual void rewind(size_t row) = 0;
};

class CsvReader {
 public:
  explicit CsvReader(const CsvFormat* format) : format_(format) {}

  // Starts a file: skips a byte order mark, and the first line if `header`.
  void begin(WindowReader* reader, bool header);
  // Reads the next row into `to`; false at the end of the file.
  bool next(WindowReader* reader, size_t row, CsvSink* to);
  // Reads a row as texts; false at the end of the file.
  bool texts(WindowReader* reader, std::vector<std::string>* fields);

  // Goes past a row that could not be read; false at the end of the file.
  bool skip_line(WindowReader* reader);

  int64_t line() const { return line_; }
  void set_line(int64_t line) { line_ = line; }

 private:
  struct Cursor {
    const char* p;
    const char* end;
    bool last;  // nothing follows `end`
  };
  enum class Walk { kRow, kMore };

  // A whole line is in memory from p on, or the file ends.
  bool prepare(WindowReader* reader);
  Walk row(Cursor* c, size_t row, CsvSink* to);
  Walk value(Cursor* c, size_t column, size_t row, CsvSink* to);
  Walk skip_field(Cursor* c);
  // Scans a field; its text, without quotes.
  Walk scan(Cursor* c, std::string_view* text);
  void store(std::string_view text, const CsvField& field, size_t column,
             size_t index, size_t row, CsvSink* to);
  bool quick_number(Cursor* c, const CsvField& field, void* to);
  [[noreturn]] void bad(size_t column, const std::string& problem) const;

  const CsvFormat* format_;
  const WindowReader* reader_ = nullptr;  // during a call
  std::string unquoted_;
  int64_t line_ = 1;       // of the file, from 1
  int64_t new_lines_ = 0;  // within quotes of this row
};

// Reads a number of any dtype that columns have; false when it is none.
bool parse_csv_number(std::string_view text, DType dtype, void* to);

}  // namespace berth::io

#endif  // BERTH_IO_CSV_ROW_H_
