#include "conformance/gpu_stand_ins/host_card/host_code.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/environment.h"
#include "berth/errors.h"

namespace berth::gpu {

namespace {
namespace host {

namespace fs = std::filesystem;

constexpr const char* kCompiler = BERTH_GPU_HOST_COMPILER;
constexpr const char* kWords = BERTH_GPU_HOST_WORDS;  // folder of host_words.h

std::string hash_of(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < 16; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> options(HostCheck check) {
  std::vector<std::string> words = {"-std=c++20",
                                    "-O1",
                                    "-g1",
                                    "-w",
                                    "-fPIC",
                                    "-shared",
                                    "-Wl,-z,defs",
                                    "-fvisibility=hidden",
                                    "-fno-exceptions",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-omit-frame-pointer",
                                    std::string("-I") + kWords};
  switch (check) {
    case HostCheck::kMemory:
      words.insert(words.end(),
                   {"-fsanitize=address,undefined,float-cast-overflow",
                    "-fno-sanitize-recover=all"});
      break;
    case HostCheck::kUndefined:
      words.insert(words.end(), {"-fsanitize=undefined,float-cast-overflow",
                                 "-fno-sanitize-recover=all"});
      break;
    case HostCheck::kRaces:
      // host_words.h defines the functions that it calls.
      words.insert(words.end(), {"-fsanitize=thread", "-DHOST_WATCHES_RACES=1",
                                 "--param=tsan-instrument-func-entry-exit=0",
                                 "-nodefaultlibs", "-lc"});
      break;
  }
  return words;
}

// Runs the compiler with its output in `log`; returns false if it failed. This
// process's sanitizers do not apply to the compiler.
bool compile(HostCheck check, const fs::path& source, const fs::path& library,
             const fs::path& log) {
  std::vector<std::string> words = options(check);
  words.insert(words.begin(), kCompiler);
  words.insert(words.end(), {"-o", library.string(), source.string(), "-lm"});
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  std::vector<char*> env;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view one = *e;
    if (!one.starts_with("LD_PRELOAD=")) env.push_back(*e);
  }
  env.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, kCompiler, &files, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  return error == 0 && waitpid(child, &status, 0) == child && status == 0;
}

// Writes the library of `text` to `library`, completely or not at all.
void make(const std::string& text, const std::string& name, HostCheck check,
          const fs::path& library) {
  static std::atomic<int> count{0};
  const std::string own = fmt::format(".{}.{}", getpid(), ++count);
  std::error_code ignored;
  fs::create_directories(library.parent_path(), ignored);
  // Reports refer to lines of the source, so it is kept.
  fs::path source = library;
  source.replace_extension(".cc");
  const fs::path log = library.string() + own + ".log";
  const fs::path next = library.string() + own;
  const fs::path next_source = source.string() + own;
  {
    std::ofstream file(next_source, std::ios::binary);
    file << text;
  }
  fs::rename(next_source, source, ignored);
  const bool good = compile(check, source, next, log);
  const std::string words = contents(log);
  fs::remove(log, ignored);
  if (good) fs::rename(next, library, ignored);
  if (good && !ignored) return;
  fs::remove(next, ignored);
  throw errors::Internal(fmt::format(
      "the kernel {} does not compile with {}: {}", name, kCompiler, words));
}

}  // namespace host
}  // namespace

HostCheck host_check() {
  if (environment_choice("BERTH_GPU_HOST_CHECK", {"memory", "races"}) ==
      "races") {
    return HostCheck::kRaces;
  }
  return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ? HostCheck::kMemory
                                                       : HostCheck::kUndefined;
}

std::string host_code_folder() {
  const std::string own = environment("BERTH_GPU_HOST_CACHE");
  return own.empty() ? BERTH_GPU_HOST_FOLDER : own;
}

HostCode host_code(const std::string& text, const std::string& name,
                   HostCheck check) {
  static const std::string words =
      host::contents(std::string(host::kWords) + "/host_words.h");
  const std::string all = fmt::format("{}\nHOST_ENTRY({})\n", text, name);
  std::string key = words + host::kCompiler;
  for (const std::string& o : host::options(check)) key += " " + o;
  const host::fs::path library =
      host::fs::path(host_code_folder()) /
      fmt::format("{}-{}.so", name, host::hash_of(key + "\n" + all));
  std::error_code ignored;
  if (!host::fs::exists(library, ignored))
    host::make(all, name, check, library);
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw errors::Internal(dlerror());
  HostCode code{name, static_cast<HostItem*>(dlsym(handle, "host_item")),
                static_cast<const HostEntry*>(dlsym(handle, "host_entry"))};
  if (code.item == nullptr || code.entry == nullptr) {
    throw errors::Internal(fmt::format("{} is no kernel", library.string()));
  }
  return code;
}

}  // namespace berth::gpu
