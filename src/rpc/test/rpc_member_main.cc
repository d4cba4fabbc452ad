// rpc_member: one task of a cluster for tests. Runs the commands in its
// arguments in order and prints a line for each.
//
//   rpc_member TASK [KEY=VALUE...] COMMAND[:ARGUMENT]...
//
// names=FILE: the host "late.test" is this one, once FILE is there.

#include <dlfcn.h>
#include <netdb.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "berth/errors.h"
#include "cluster/member.h"

namespace {
const char* names_file = "";
}  // namespace

// Stands before that of the C library, for the plug-in too.
extern "C" int getaddrinfo(const char* node, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  static const auto theirs = reinterpret_cast<decltype(&getaddrinfo)>(
      ::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node != nullptr && std::strcmp(node, "late.test") == 0) {
    if (::access(names_file, F_OK) != 0) return EAI_NONAME;
    node = "127.0.0.1";
  }
  return theirs(node, service, hints, found);
}

namespace {

using berth::Tensor;
using berth::cluster::Member;
using berth::cluster::Message;
using berth::distribute::ClusterSpec;
using berth::distribute::TaskId;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

TaskId task_of(const std::string& text) {
  const size_t colon = text.find(':');
  return {text.substr(0, colon), std::atoi(text.c_str() + colon + 1)};
}

Tensor numbers(int n, float first) {
  auto* values = new std::vector<float>(n);
  std::iota(values->begin(), values->end(), first);
  return berth::wrap_memory(values->data(), berth::Shape({n}), berth::float32,
                            [values] { delete values; });
}

struct Program {
  std::map<std::string, std::string> options;
  TaskId task;
  std::shared_ptr<Member> member;

  std::string option(const std::string& key, const std::string& otherwise) {
    return options.contains(key) ? options[key] : otherwise;
  }

  void join() {
    if (options.contains("names")) names_file = options["names"].c_str();
    berth::distribute::ClusterResolver r;
    std::map<std::string, std::vector<std::string>> jobs;
    for (const auto& [key, value] : options) {
      if (key != "worker" && key != "ps" && key != "chief") continue;
      std::string all = value + ",";
      for (size_t at = 0; at < all.size();) {
        const size_t end = all.find(',', at);
        jobs[key].push_back(all.substr(at, end - at));
        at = end + 1;
      }
    }
    r.task = task;
    r.rendezvous = option("rendezvous", "");
    r.spec = r.rendezvous.empty()
                 ? ClusterSpec(std::move(jobs))
                 : ClusterSpec::of_workers(
                       std::atoi(option("workers", "1").c_str()), r.rendezvous);
    berth::cluster::JoinOptions o;
    o.secret = option("secret", "");
    o.transport = option("transport", "auto");
    o.dead_after_seconds = std::atof(option("dead", "10").c_str());
    o.join_timeout_seconds = std::atof(option("timeout", "60").c_str());
    if (options.contains("elastic")) o.elastic_jobs = {options["elastic"]};
    o.min_tasks = std::atoi(option("min", "0").c_str());
    if (options.contains("tls")) {
      const std::string folder = options["tls"] + "/";
      o.tls_ca = o.tls_certificate = folder + "cert.pem";
      o.tls_key = folder + "key.pem";
    }
    member = Member::join(r, o);
    const auto token = std::make_shared<int>(0);
    held = token;
    member->serve("echo", [this, token](const TaskId& from, Message m) {
      if (m.text == "throw") throw berth::errors::NotFound("no such thing");
      if (m.text == "sleep") ::usleep(500'000);
      m.text = task.str() + " hears " + from.str() + ": " + m.text;
      return m;
    });
    say("joined " + std::to_string(member->generation()) + " rank " +
        std::to_string(member->rank()) + " of " +
        std::to_string(member->num_ranks()));
  }

  void call(const std::string& to, const std::string& text) {
    const int n = text == "big" ? 3'000'000 : 5;
    Message m{text, {numbers(n, 7)}};
    const Message reply =
        member->call(task_of(to), "echo", std::move(m), 100).get();
    const auto values = reply.tensors.at(0).to_vector<float>();
    bool same = static_cast<int>(values.size()) == n;
    for (int i = 0; i < n && same; ++i) same = values[i] == 7.f + i;
    say(std::string(same ? "" : "WRONG ") + reply.text);
  }

  std::weak_ptr<int> held;  // by a handler

  void wait_failure() {
    for (int i = 0; i < 100'000 && !member->failure(); ++i) ::usleep(1000);
    const auto f = member->failure();
    if (f) {
      say("failed " + std::string(berth::errors::code_name(f->code)) + " " +
          f->message);
    } else {
      say("no failure");
    }
  }

  void run(const std::string& name, const std::string& argument) {
    if (name == "join") return join();
    if (!member && name != "sleep" && name != "input") {
      throw berth::errors::FailedPrecondition("did not join");
    }
    if (name == "call") {
      const size_t slash = argument.find('/');
      return call(argument.substr(0, slash), argument.substr(slash + 1));
    }
    if (name == "wait") return wait_failure();
    if (name == "held") return say(held.expired() ? "held no" : "held yes");
    if (name == "sleep") {
      ::usleep(static_cast<useconds_t>(std::atof(argument.c_str()) * 1e6));
      return;
    }
    if (name == "input") {  // until the test continues it
      char c;
      static_cast<void>(!::read(0, &c, 1));
      return;
    }
    if (name == "barrier") {
      const size_t slash = argument.find('/');
      member->barrier(argument.substr(0, slash),
                      slash == std::string::npos
                          ? 0
                          : std::atof(argument.c_str() + slash + 1));
    } else if (name == "put") {
      member->put(argument, argument + " of " + task.str());
    } else if (name == "get") {
      return say(member->get(argument, 100));
    } else if (name == "abort") {
      member->abort(berth::errors::Code::kInvalidArgument, argument, 17);
    } else if (name == "again" || name == "shrink") {
      member->form_again(100, name == "shrink");
      return say("joined " + std::to_string(member->generation()) + " rank " +
                 std::to_string(member->rank()) + " of " +
                 std::to_string(member->num_ranks()));
    } else if (name == "elastic") {
      member->set_elastic(std::atoi(argument.c_str()), 0);
    } else if (name == "announce") {
      member->announce_end();
    } else if (name == "leave") {
      member->leave(argument.empty() ? 100 : std::atof(argument.c_str()));
    } else if (name == "die") {
      ::raise(SIGKILL);
    } else {
      say("no such command");
    }
    say(name);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Program program;
  program.task = task_of(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      program.options[word.substr(0, equals)] = word.substr(equals + 1);
      continue;
    }
    const size_t colon = word.find(':');
    try {
      program.run(word.substr(0, colon),
                  colon == std::string::npos ? "" : word.substr(colon + 1));
    } catch (const berth::errors::Error& e) {
      say("error " + std::string(berth::errors::code_name(e.code())) + " " +
          e.what());
    }
  }
  return 0;
}
