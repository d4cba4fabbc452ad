// Fields: what a class was made of, named once for both directions.
//
// An author lists the fields of a class in a function of the arguments of its
// constructor, as Keras names them; a name among the options is one of itself:
//   void dropout_fields(Fields& f, double& rate, DropoutOptions& o) {
//     f.must("rate", rate);
//     f("seed", o.seed);
//   }
// get_config() runs it to write, from_config() to read; what a config lacks
// keeps its default. describe<dropout_fields>() (classes.h) ties it to a layer.

#ifndef BERTH_KERAS_CONFIG_FIELDS_H_
#define BERTH_KERAS_CONFIG_FIELDS_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/keras/image_layers.h"
#include "berth/keras/saving.h"

namespace berth::keras {

class Fields {
 public:
  // Writes into `out`, which must outlive it.
  explicit Fields(Config* out);
  // Reads `in`, the config of such a class.
  Fields(Config in, std::string class_name, Site site);

  bool reading() const { return out_ == nullptr; }
  Site site() const { return site_; }

  // Reads or writes a field. Reading throws errors::InvalidArgument that names
  // class and field.
  void operator()(const char* name, bool& v);
  void operator()(const char* name, int& v);
  void operator()(const char* name, int64_t& v);
  void operator()(const char* name, double& v);
  void operator()(const char* name, std::string& v);
  void operator()(const char* name, DType& v);
  void operator()(const char* name, Shape& v);  // null: an open dimension
  void operator()(const char* name, Size2D& v);
  void operator()(const char* name, Margin& v);
  void operator()(const char* name, std::vector<int64_t>& v);
  void operator()(const char* name, std::vector<double>& v);
  void operator()(const char* name, std::vector<std::string>& v);
  void operator()(const char* name, std::vector<Margin>& v);
  void operator()(const char* name, Initializer& v);
  void operator()(const char* name, Regularizer& v);  // null: none
  void operator()(const char* name, Constraint& v);
  void operator()(const char* name, std::vector<Layer>& v);
  // A layer inside: absent only before it is read.
  void operator()(const char* name, std::optional<Layer>& v);
  // null: absent.
  template <class T>
  void operator()(const char* name, std::optional<T>& v) {
    if (!reading() && !v) return put(name, nullptr);
    if (reading() && !get(name)) return;
    T value = v.value_or(T(0));
    (*this)(name, value);
    v = value;
  }

  // A field without a default.
  template <class T>
  void must(const char* name, T& v) {
    if (reading()) check_there(name);
    (*this)(name, v);
  }

  // A field that Keras writes only where it is set.
  template <class T>
  void unless_none(const char* name, T& v) {
    if (reading() || v) (*this)(name, v);
  }
  // An activation's name; Keras writes "linear" for none.
  void activation(const char* name, std::string& v);
  // A text; null stands for "".
  void text_or_null(const char* name, std::string& v);
  // A number that Keras writes as a list of one.
  void one(const char* name, int64_t& v);
  void one(const char* name, std::optional<int64_t>& v);
  // A field of Keras that has one meaning here.
  void fixed(const char* name, const Config& value);

  // For fields of other types. get() gives nothing for null.
  std::optional<Config> get(const char* name);
  void put(const char* name, const Config& value);
  [[noreturn]] void fail(const char* name, const Config& found,
                         const std::string& expected) const;

  // After reading: throws errors::InvalidArgument when a field that says
  // something was not asked for.
  void done() const;

 private:
  void check_there(const char* name) const;
  // Runs `read`, naming the field in what it throws.
  template <class Read>
  void read(const char* name, const Read& read);

  Config* const out_ = nullptr;
  const Config in_;
  const std::string class_name_;
  const Site site_ = {};
  std::set<std::string> asked_;
};

// How a value was made: the name of its class and a writer of its fields.
struct Description {
  std::string class_name;
  std::function<void(Fields&)> write;
};

// Returns that of a value made of `args`.
template <class Args>
std::shared_ptr<const Description> description(std::string class_name,
                                               Args args) {
  return std::make_shared<const Description>(Description{
      std::move(class_name),
      [args = std::move(args)](Fields& f) mutable { args.fields(f); }});
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_CONFIG_FIELDS_H_
