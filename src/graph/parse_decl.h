// Declarations of a graph text: ops, kernels, device classes, devices, links,
// functions. Each call reads the rest of one line. One thread.

#ifndef BERTH_GRAPH_PARSE_DECL_H_
#define BERTH_GRAPH_PARSE_DECL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "graph/body.h"
#include "graph/declared_function.h"
#include "graph/graph_text.h"
#include "graph/text_line.h"

namespace berth {

// An output whose name ends so stands for any number of outputs.
inline constexpr std::string_view kRepeated = "...";

// So that nothing that walks a graph with its callees takes for ever: nodes
// with those of callees counted at each call.
inline constexpr int64_t kMaxNestedNodes = int64_t{1} << 24;

// What lines below can refer to by name.
class TextNames {
 public:
  struct Function {
    std::shared_ptr<Callable> callable;
    int64_t nodes = 0;  // with those of its callees
    int32_t depth = 1;
  };

  // Each throws through `line`, at the token read last or at `column`, when the
  // name is unknown, or taken.
  const OpDef& op(TextLine& line, const std::string& name) const;
  const Function& function(TextLine& line, const std::string& name) const;
  void add_op(TextLine& line, int64_t column, const OpDef& op);
  void check_new_function(TextLine& line, const std::string& name) const;
  void add_function(Function f);
  // The function whose body is being read; "": none.
  void open_function(std::string name) { open_ = std::move(name); }

 private:
  std::string open_;
  std::unordered_map<std::string, const OpDef*> ops_;
  std::unordered_map<std::string, Function> functions_;
};

std::shared_ptr<const OpDef> parse_op(TextLine& line);
KernelDecl parse_kernel(TextLine& line, const TextNames& names);
ClassDecl parse_class(TextLine& line);
DeviceDecl parse_device(TextLine& line);
// The rest of "local NAME" and of "order TYPE, ...".
std::string parse_local(TextLine& line);
std::vector<std::string> parse_order(TextLine& line);
// True when the device named so, a name that parse_device() took, is of the
// type; capitals and small letters are the same.
bool is_of_type(const std::string& device, const std::string& type);
LinkDecl parse_link(TextLine& line);
std::shared_ptr<DeclaredFunction> parse_function(TextLine& line,
                                                 const TextNames& names);

// A number that is at least 0 (`positive`: more), not NaN and, unless
// `infinite`, not infinite.
enum class Amount : uint8_t { kFinite, kPositive, kInfinite };
double parse_amount(TextLine& line, const char* what, Amount kind);
// A count of bytes, 0 or more.
int64_t parse_bytes(TextLine& line);

}  // namespace berth

#endif  // BERTH_GRAPH_PARSE_DECL_H_
