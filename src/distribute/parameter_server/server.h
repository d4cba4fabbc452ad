// The parameter server: keeps variables, returns their values or rows, and runs
// the parts of functions that change them. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "berth/variable.h"
#include "cluster/member.h"
#include "distribute/parameter_server/requests.h"
#include "function/graph_callable.h"

namespace berth::distribute {

class PsServer {
 public:
  // hello                 -> incarnation
  // begin                 forgets everything, for a new chief -> incarnation
  // create KEY...         creates variables with these values, if missing
  // assign KEY...         writes values
  // read KEY... @KEY...   -> values; @: rows at the ids in the request
  // define HASH \n TEXT   a part of a function; tensors: its large constants
  // run HASH NUMBER       runs it on the tensors -> its results
  cluster::Message handle(Request& request, Tensors& tensors);

 private:
  struct Part {
    Graph graph;
    bool eager = false;  // the sizes of its arguments keep changing
    bool random = false;
    std::unique_ptr<GraphCallable> compiled;
  };
  Variable variable(const std::string& key) const;
  Tensors read(Request& request, const Tensors& ids) const;
  void define(const std::string& hash, const std::string& text);
  Tensors run(const std::string& hash, const Tensors& args);

  const uint64_t incarnation_ = new_incarnation();
  mutable std::mutex mutex_;
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::shared_ptr<Part>> parts_;
};

// Runs a graph on these arguments. Throws errors::InvalidArgument if they do
// not match its parameters.
Tensors run_part(GraphCallable& part, const Tensors& args);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_H_
