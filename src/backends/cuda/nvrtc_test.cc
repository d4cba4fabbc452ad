// The compiler and its cache on disk.

#include "backends/cuda/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "backends/cuda/library_folders.h"

namespace berth::cuda {
namespace {

namespace fs = std::filesystem;

class Compiler : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    nvrtc_ = Nvrtc::find(&why);
    if (nvrtc_ == nullptr) GTEST_SKIP() << why;
  }
  const Nvrtc* nvrtc_ = nullptr;
};

constexpr char kText[] =
    "extern \"C\" __global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; }";

TEST_F(Compiler, MakesCodeWithoutFusedProducts) {
  for (const int architecture : {80, 90, 100}) {
    const Compiled c = nvrtc_->compile(kText, architecture);
    ASSERT_TRUE(c.good) << c.log;
    EXPECT_EQ(c.cubin.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_EQ(c.ptx.find("fma"), std::string::npos) << c.ptx;
    EXPECT_NE(c.ptx.find("mul.rn.f32"), std::string::npos) << c.ptx;
  }
}

TEST_F(Compiler, KnowsArchitectures) {
  EXPECT_EQ(nvrtc_->architecture_for(9, 0), 90);
  EXPECT_EQ(nvrtc_->architecture_for(8, 6), 86);
  EXPECT_EQ(nvrtc_->architecture_for(12, 9), 121);
  EXPECT_EQ(nvrtc_->architecture_for(7, 0), 0);
  EXPECT_EQ(nvrtc_->architecture_for(99, 0), 0);
}

TEST_F(Compiler, SaysWhatIsWrong) {
  const Compiled c = nvrtc_->compile("int x = y;", 90);
  EXPECT_FALSE(c.good);
  EXPECT_NE(c.log.find("NVRTC_ERROR_COMPILATION: "), std::string::npos);
  EXPECT_NE(c.log.find("\"y\" is undefined"), std::string::npos) << c.log;
  EXPECT_FALSE(nvrtc_->compile(kText, 42).good);
}

// A kernel that no earlier run has put into the cache.
std::string fresh_kernel(int number) {
  return fmt::format(
      "extern \"C\" __global__ void f{0}(long* x) {{ x[{0}] = {1}; }}\n",
      number, std::chrono::steady_clock::now().time_since_epoch().count());
}

TEST_F(Compiler, MakesOneProgramOfAllPartsAndFindsEachLater) {
  constexpr char kBeginning[] = "// parts\n";
  std::vector<std::string> parts = {fresh_kernel(0), fresh_kernel(1)};
  const auto compilations_of = [&] {
    const int before = nvrtc_->compilations();
    const auto codes = nvrtc_->cubins(kBeginning, parts, 90);
    EXPECT_EQ(codes.size(), parts.size());
    for (size_t i = 0; i < codes.size(); ++i) {
      const std::string name = fmt::format("f{}", parts[i][27]);
      EXPECT_NE(codes[i]->find(name), std::string::npos) << name;
    }
    EXPECT_EQ(codes[0], codes[1]);
    return nvrtc_->compilations() - before;
  };
  EXPECT_EQ(compilations_of(), 1);
  EXPECT_EQ(compilations_of(), 0);
  // Another plan has them and two more.
  parts.push_back(fresh_kernel(2));
  parts.push_back(fresh_kernel(3));
  EXPECT_EQ(compilations_of(), 1);
  EXPECT_EQ(compilations_of(), 0);
  // They depend on what they begin with, and on the architecture.
  const int before = nvrtc_->compilations();
  nvrtc_->cubins("// other parts\n", parts, 90);
  nvrtc_->cubins(kBeginning, parts, 80);
  EXPECT_EQ(nvrtc_->compilations() - before, 2);
}

class Cache : public testing::Test {
 protected:
  const std::string folder_ =
      testing::TempDir() + "/berth_cubins_" + std::to_string(getpid());
  ~Cache() override { fs::remove_all(folder_); }
};

TEST_F(Cache, KeepsWhatItWasGiven) {
  const CubinCache cache(folder_);
  const std::string code("a\0b\n", 4);
  EXPECT_FALSE(cache.find("key"));
  cache.keep("key", code);
  EXPECT_EQ(cache.find("key"), code);
  EXPECT_FALSE(cache.find("other"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Cache, TakesADamagedFileForNone) {
  const CubinCache cache(folder_);
  for (const long at : {0L, 20L, 90L}) {
    cache.keep("key", std::string(100, 'x'));
    {
      std::fstream file(cache.path_of("key"));
      file.seekp(at);
      file << '!';
    }
    EXPECT_FALSE(cache.find("key")) << at;
  }
  fs::resize_file(cache.path_of("key"), 100);
  EXPECT_FALSE(cache.find("key"));
  cache.keep("key", "again");
  EXPECT_EQ(cache.find("key"), "again");
}

TEST_F(Cache, NeedsNoFolder) {
  for (const CubinCache& cache : {CubinCache(""), CubinCache("/proc/none")}) {
    cache.keep("key", "code");
    EXPECT_FALSE(cache.find("key"));
  }
}

TEST(LibraryFolders, BeginWithThoseThatWereNamed) {
  setenv("BERTH_CUDA_LIBRARIES", "/one:/two", 1);
  const auto folders = library_folders();
  unsetenv("BERTH_CUDA_LIBRARIES");
  ASSERT_GE(folders.size(), 5u);
  EXPECT_EQ(folders[0], "/one");
  EXPECT_EQ(folders[1], "/two");
  EXPECT_EQ(folders[3], "");
  EXPECT_EQ(folders[4], "/usr/local/cuda/lib64");
}

TEST(LibraryFolders, HaveThoseOfPythons) {
  const std::string root =
      testing::TempDir() + "/berth_python_" + std::to_string(getpid());
  const std::string lib =
      root + "/lib/python3.12/site-packages/nvidia/cu13/lib";
  fs::create_directories(lib);
  fs::create_directories(root + "/bin");
  std::ofstream(root + "/bin/python3") << "";
  const std::string path = std::getenv("PATH");
  setenv("PATH", (root + "/bin:" + path).c_str(), 1);
  const auto folders = library_folders();
  setenv("PATH", path.c_str(), 1);
  fs::remove_all(root);
  EXPECT_NE(std::find(folders.begin(), folders.end(), lib), folders.end());
}

}  // namespace
}  // namespace berth::cuda
