#include "io/mnist_files.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "berth/errors.h"
#include "io/loopback_server_testing.h"
#include "io/sha256.h"
#include "io/temp_dir_testing.h"

namespace berth::io {
namespace {

using testing::exists;
using testing::HttpRequest;
using testing::LoopbackServer;
using testing::read_file;
using testing::ScopedEnv;
using testing::ServedClient;
using testing::TempDir;
using testing::write_file;

const std::vector<std::string> kNames = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

class Mnist : public ::testing::Test {
 protected:
  void fill(const std::string& folder, const std::string& ending) {
    std::filesystem::create_directories(folder);
    for (const auto& name : kNames)
      write_file(folder + "/" + name + ending, "x");
  }

  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << text;
  }

  // Nothing of the machine's own set-up takes part.
  ScopedEnv no_proxy_{"no_proxy", "*"};
  ScopedEnv data_{"BERTH_DATA", ""};
  ScopedEnv offline_{"BERTH_OFFLINE", ""};
  TempDir dir_;
  ScopedEnv home_{"HOME", dir_ / "home"};
  LoopbackServer absent_{[](ServedClient& to, const HttpRequest&) {
    to.answer("404 Not Found", "", 0);
  }};
  MnistOptions options_{.base_url = absent_.url("/"),
                        .probe_timeout_ms = 3000,
                        .connect_timeout_ms = 1000,
                        .stall_timeout_ms = 3000,
                        .total_timeout_ms = 3000};
};

TEST_F(Mnist, PrefersTheGivenFolderThenTheEnvironmentThenTheCache) {
  fill(dir_ / "given", ".gz");
  fill(dir_ / "env", "");
  fill(dir_ / "home/.cache/berth/mnist", "");
  const ScopedEnv data("BERTH_DATA", dir_ / "env");
  options_.directory = dir_ / "given";
  MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_EQ(files.source, MnistSource::kDirectory);
  EXPECT_EQ(files.train_images, dir_ / "given/train-images-idx3-ubyte.gz");
  EXPECT_EQ(files.test_labels, dir_ / "given/t10k-labels-idx1-ubyte.gz");

  std::filesystem::remove(files.train_labels);
  files = find_or_fetch_mnist(options_);
  EXPECT_EQ(files.source, MnistSource::kEnvironment);
  EXPECT_EQ(files.train_labels, dir_ / "env/train-labels-idx1-ubyte");
  expect_has(files.why, "has no train-labels-idx1-ubyte.gz");

  std::filesystem::remove(files.test_images);
  files = find_or_fetch_mnist(options_);
  EXPECT_EQ(files.source, MnistSource::kCache);
  EXPECT_EQ(files.where, dir_ / "home/.cache/berth/mnist");
  expect_has(files.why, "--data");
  expect_has(files.why, "$BERTH_DATA");
  EXPECT_EQ(absent_.requests(), 0);
}

TEST_F(Mnist, ACachedFileWithAWrongChecksumIsNotUsed) {
  fill(dir_ / "home/.cache/berth", ".gz");
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  EXPECT_EQ(absent_.requests(), 1);
}

TEST_F(Mnist, OfflineAsksNobodyAndSaysSo) {
  const ScopedEnv offline("BERTH_OFFLINE", "1");
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  EXPECT_TRUE(files.train_images.empty());
  expect_has(files.why, "no MNIST files");
  expect_has(files.why, "BERTH_OFFLINE");
  EXPECT_EQ(absent_.requests(), 0);
}

TEST_F(Mnist, OfflineIsOneOrZero) {
  const ScopedEnv offline("BERTH_OFFLINE", "maybe");
  fill(dir_ / "given", "");
  options_.directory = dir_ / "given";
  EXPECT_THROW(find_or_fetch_mnist(options_), errors::InvalidArgument);
}

TEST_F(Mnist, TheOptionForbidsTheDownloadToo) {
  options_.allow_download = false;
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, "switched off");
  EXPECT_EQ(absent_.requests(), 0);
}

TEST_F(Mnist, DownloadsTheFourFilesIntoTheCacheAndFindsThemThereLater) {
  LoopbackServer server([](ServedClient& to, const HttpRequest& request) {
    to.serve(request, "content of " + request.path);
  });
  options_.base_url = server.url("/set/");
  auto& set = options_.files;
  for (MnistFile* file : {&set.train_images, &set.train_labels,
                          &set.test_images, &set.test_labels}) {
    const std::string content = "content of /set/" + file->name + ".gz";
    file->bytes = static_cast<int64_t>(content.size());
    file->sha256 = sha256_of(content);
  }
  std::vector<std::string> seen;
  options_.progress = [&](const std::string& name, int64_t, int64_t) {
    if (seen.empty() || seen.back() != name) seen.push_back(name);
  };
  MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_EQ(files.source, MnistSource::kDownload);
  EXPECT_EQ(files.where, server.url("/set/"));
  EXPECT_EQ(read_file(files.train_images),
            "content of /set/train-images-idx3-ubyte.gz");
  EXPECT_EQ(read_file(files.test_labels),
            "content of /set/t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(server.requests(), 4);

  files = find_or_fetch_mnist(options_);
  EXPECT_EQ(files.source, MnistSource::kCache);
  EXPECT_EQ(files.where, dir_ / "home/.cache/berth");
  EXPECT_EQ(server.requests(), 4);
}

TEST_F(Mnist, AnExceptionOfTheProgressCallbackPassesThrough) {
  LoopbackServer server([](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", std::string(1000, 'x'), 4542);
    to.stall();
  });
  options_.base_url = server.url("/");
  options_.progress = [](const std::string&, int64_t, int64_t) {
    throw std::domain_error("enough");
  };
  EXPECT_THROW(find_or_fetch_mnist(options_), std::domain_error);
}

TEST_F(Mnist, AFailedDownloadIsAReasonAndStopsAtTheFirstFile) {
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, "HTTP 404");
  expect_has(files.why, absent_.url("/t10k-labels-idx1-ubyte.gz"));
  EXPECT_EQ(absent_.requests(), 1);
}

TEST_F(Mnist, AnUnknownHostAndADeadPortAreReasons) {
  options_.base_url = "http://nothing.invalid/";
  EXPECT_FALSE(find_or_fetch_mnist(options_).found());
  options_.base_url = absent_.url("/");
  absent_.stop();
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, "check the network connection");
}

TEST_F(Mnist, AServerThatStallsIsGivenUpWithinTheBound) {
  LoopbackServer server(
      [](ServedClient& to, const HttpRequest&) { to.stall(); });
  options_.stall_timeout_ms = 150;
  options_.base_url = server.url("/");
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, "sent nothing for 150 ms");
}

TEST_F(Mnist, WrongBytesFromTheServerAreNotTakenForMnist) {
  LoopbackServer server([](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", std::string(4542, 'x'), 4542);
  });
  options_.base_url = server.url("/");
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, "SHA-256");
  EXPECT_FALSE(exists(dir_ / "home/.cache/berth/t10k-labels-idx1-ubyte.gz"));
}

TEST_F(Mnist, NoHomeOrAnUnwritableCacheAreReasons) {
  {
    const ScopedEnv home("HOME", "");
    const MnistFiles files = find_or_fetch_mnist(options_);
    EXPECT_FALSE(files.found());
    expect_has(files.why, "HOME is not set");
  }
  write_file(dir_ / "plain", "x");
  options_.cache = dir_ / "plain/cache";
  const MnistFiles files = find_or_fetch_mnist(options_);
  EXPECT_FALSE(files.found());
  expect_has(files.why, dir_ / "plain/cache");
}

}  // namespace
}  // namespace berth::io
