// CsvNode: the rows of CSV files as elements. Internal to the module.

#ifndef BERTH_IO_CSV_NODE_H_
#define BERTH_IO_CSV_NODE_H_

#include <memory>
#include <string>
#include <vector>

#include "io/csv_row.h"
#include "io/file_cursor.h"

namespace berth::io {

class CsvNode : public FileNode {
 public:
  CsvNode(const char* what, Site site, data::FileNames files,
          const std::vector<data::CsvColumn>& columns,
          const data::CsvOptions& options,
          const std::vector<std::string>& names = {});

  std::unique_ptr<data::ElementStream> elements(
      const data::PassInfo& pass) const override;
  std::unique_ptr<data::ElementStream> batches(
      const data::PassInfo& pass, size_t size,
      bool drop_remainder) const override;
  const std::vector<TensorSpec>& specs() const override { return specs_; }
  data::NamesRef names() const override { return names_; }

  const CsvFormat& format() const { return format_; }
  bool header() const { return header_; }

 private:
  void select(size_t fields, const data::CsvOptions& options);

  CsvFormat format_;
  bool header_;
  std::vector<TensorSpec> specs_;
  data::NamesRef names_;
};

}  // namespace berth::io

#endif  // BERTH_IO_CSV_NODE_H_
