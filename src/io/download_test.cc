#include "io/download.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
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

std::string test_file() {
  std::string file;
  for (int i = 0; i < 50'000; ++i) file += static_cast<char>(i * 7 + i / 251);
  return file;
}

class Download : public ::testing::Test {
 protected:
  // Options with short times for `server`; every test ends in a second.
  DownloadOptions options(const LoopbackServer& server) const {
    return {.url = server.url("/data.gz"),
            .path = path_,
            .sha256 = sha256_of(file_),
            .expected_bytes = static_cast<int64_t>(file_.size()),
            .connect_timeout_ms = 2000,
            .stall_timeout_ms = 3000,
            .total_timeout_ms = 5000,
            .max_attempts = 2,
            .retry_delay_ms = 1};
  }

  // Runs a download that must fail and returns its error.
  template <typename E>
  std::string failure(const DownloadOptions& options) {
    try {
      download(options);
    } catch (const E& error) {
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another error: " << error.what();
      return "";
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  LoopbackServer::Answer good() {
    return [this](ServedClient& to, const HttpRequest& request) {
      to.serve(request, file_);
    };
  }

  ScopedEnv no_proxy_{"no_proxy", "*"};
  TempDir dir_;
  std::string file_ = test_file();
  std::string path_ = dir_ / "sub/data.gz";
};

TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_of(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Download, PutsTheVerifiedFileInPlaceAndReportsProgress) {
  LoopbackServer server(good());
  auto wanted = options(server);
  std::vector<int64_t> done;
  wanted.progress = [&](int64_t bytes, int64_t total) {
    EXPECT_EQ(total, static_cast<int64_t>(file_.size()));
    done.push_back(bytes);
  };
  const DownloadResult result = download(wanted);
  EXPECT_EQ(read_file(path_), file_);
  EXPECT_FALSE(exists(path_ + ".part"));
  EXPECT_EQ(result.attempts, 1);
  EXPECT_EQ(result.resumed_from, 0);
  EXPECT_EQ(result.bytes, static_cast<int64_t>(file_.size()));
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), result.bytes);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST_F(Download, AsksNobodyWhenTheRightFileIsThere) {
  LoopbackServer server(good());
  download(options(server));
  EXPECT_EQ(download(options(server)).attempts, 0);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(Download, ReplacesAFileWithAnotherChecksum) {
  LoopbackServer server(good());
  download(options(server));
  write_file(path_, "damaged later");
  EXPECT_EQ(download(options(server)).attempts, 1);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, ResumesThePartByRange) {
  int64_t asked = -1;
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    asked = request.range_start;
    to.serve(request, file_);
  });
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", file_.substr(0, 30'000));
  const DownloadResult result = download(options(server));
  EXPECT_EQ(asked, 30'000);
  EXPECT_EQ(result.resumed_from, 30'000);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, TakesACompletePartWithoutAsking) {
  LoopbackServer server(good());
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", file_);
  EXPECT_EQ(download(options(server)).attempts, 0);
  EXPECT_EQ(server.requests(), 0);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, BeginsAnewWhenTheServerIgnoresRange) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", file_, static_cast<int64_t>(file_.size()));
  });
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", file_.substr(0, 30'000));
  const DownloadResult result = download(options(server));
  EXPECT_EQ(result.attempts, 1);
  EXPECT_EQ(result.resumed_from, 0);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, BeginsAnewWhenTheServerAnswersAnotherRange) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    if (request.range_start < 0) return to.serve(request, file_);
    to.answer("206 Partial Content", file_.substr(0, 10'000), 10'000,
              ServedClient::content_range(0, 10'000));
  });
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", file_.substr(0, 30'000));
  EXPECT_EQ(download(options(server)).attempts, 2);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, DropsAPartOfAnotherFile) {
  LoopbackServer server(good());
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", std::string(30'000, 'x'));
  EXPECT_EQ(download(options(server)).attempts, 2);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, DropsAPartThatIsTooLongForTheServer) {
  LoopbackServer server(good());
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", file_ + "more");
  auto wanted = options(server);
  wanted.expected_bytes = -1;  // so that only the server's 416 tells
  EXPECT_EQ(download(wanted).attempts, 2);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, DoesNotResumeWithoutAChecksum) {
  LoopbackServer server(good());
  std::filesystem::create_directories(dir_ / "sub");
  write_file(path_ + ".part", std::string(30'000, 'x'));
  auto wanted = options(server);
  wanted.sha256.clear();
  EXPECT_EQ(download(wanted).resumed_from, 0);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, ResumesByItselfAfterATruncatedAnswer) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    if (request.range_start >= 0) return to.serve(request, file_);
    to.answer("200 OK", file_.substr(0, 20'000),
              static_cast<int64_t>(file_.size()));
  });
  const DownloadResult result = download(options(server));
  EXPECT_EQ(result.attempts, 2);
  EXPECT_EQ(result.resumed_from, 20'000);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, TruncationIsDataLossAndKeepsThePartForLater) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    const size_t start =
        static_cast<size_t>(std::max<int64_t>(0, request.range_start));
    const int64_t size = static_cast<int64_t>(file_.size());
    to.answer(start > 0 ? "206 Partial Content" : "200 OK",
              file_.substr(start, 10'000), size - static_cast<int64_t>(start),
              ServedClient::content_range(static_cast<int64_t>(start), size));
  });
  const std::string what = failure<errors::DataLoss>(options(server));
  EXPECT_NE(what.find(server.url("/data.gz")), std::string::npos) << what;
  EXPECT_NE(what.find("20000 bytes are there"), std::string::npos) << what;
  EXPECT_FALSE(exists(path_));
  EXPECT_EQ(read_file(path_ + ".part"), file_.substr(0, 20'000));
}

TEST_F(Download, TruncationWithoutALengthIsDataLoss) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", file_.substr(0, 10'000), -1);
  });
  const std::string what = failure<errors::DataLoss>(options(server));
  EXPECT_NE(what.find("ended after 10000 bytes; expected 50000"),
            std::string::npos)
      << what;
  EXPECT_FALSE(exists(path_));
}

TEST_F(Download, CorruptionIsDataLossAndLeavesNothing) {
  std::string other = file_;
  other[12'345] ^= 1;
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    to.serve(request, other);
  });
  const std::string what = failure<errors::DataLoss>(options(server));
  EXPECT_NE(what.find(sha256_of(other)), std::string::npos) << what;
  EXPECT_NE(what.find(sha256_of(file_)), std::string::npos) << what;
  EXPECT_EQ(server.requests(), 2);
  EXPECT_FALSE(exists(path_));
  EXPECT_FALSE(exists(path_ + ".part"));
}

TEST_F(Download, StopsAServerThatSendsTooMuch) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", file_ + std::string(1 << 20, 'x'), -1);
  });
  const std::string what = failure<errors::DataLoss>(options(server));
  EXPECT_NE(what.find("more than the expected 50000"), std::string::npos)
      << what;
  EXPECT_FALSE(exists(path_ + ".part"));
}

TEST_F(Download, AStallIsDeadlineExceeded) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", file_.substr(0, 1000),
              static_cast<int64_t>(file_.size()));
    to.stall();
  });
  auto wanted = options(server);
  wanted.stall_timeout_ms = 200;
  const std::string what = failure<errors::DeadlineExceeded>(wanted);
  EXPECT_NE(what.find("sent nothing for 200 ms after 1000"), std::string::npos)
      << what;
  EXPECT_FALSE(exists(path_));
}

TEST_F(Download, AServerThatNeverAnswersIsDeadlineExceeded) {
  LoopbackServer server(
      [&](ServedClient& to, const HttpRequest&) { to.stall(); });
  auto wanted = options(server);
  wanted.stall_timeout_ms = 200;
  const std::string what = failure<errors::DeadlineExceeded>(wanted);
  EXPECT_NE(what.find("sent nothing for 200 ms after 0"), std::string::npos)
      << what;
}

TEST_F(Download, ADripIsBoundedByTheTotalTime) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("200 OK", "", static_cast<int64_t>(file_.size()));
    for (int i = 0; i < 200; ++i) {
      if (!to.send_text("x")) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  auto wanted = options(server);
  wanted.total_timeout_ms = 300;
  const std::string what = failure<errors::DeadlineExceeded>(wanted);
  EXPECT_NE(what.find("not finished within 300 ms"), std::string::npos) << what;
}

TEST_F(Download, ARepeatedResetIsUnavailable) {
  LoopbackServer server(
      [&](ServedClient& to, const HttpRequest&) { to.reset(); });
  failure<errors::Unavailable>(options(server));
  EXPECT_EQ(server.requests(), 2);
}

TEST_F(Download, AResetInTheMiddleIsTriedAgain) {
  int answers = 0;
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    if (++answers > 1) return to.serve(request, file_);
    to.answer("200 OK", file_.substr(0, 5000), 50'000);
    to.reset();
  });
  EXPECT_EQ(download(options(server)).attempts, 2);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, NotFoundIsNotTriedAgainAndItsPageIsNotStored) {
  LoopbackServer server([&](ServedClient& to, const HttpRequest&) {
    to.answer("404 Not Found", "<html>no</html>", 15);
  });
  const std::string what = failure<errors::NotFound>(options(server));
  EXPECT_NE(what.find("HTTP 404"), std::string::npos) << what;
  EXPECT_NE(what.find(server.url("/data.gz")), std::string::npos) << what;
  EXPECT_EQ(server.requests(), 1);
  EXPECT_FALSE(exists(path_));
  EXPECT_FALSE(exists(path_ + ".part"));
}

TEST_F(Download, AServerErrorIsTriedAgain) {
  int answers = 0;
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    if (++answers == 1) return to.answer("503 Busy", "later", 5);
    to.serve(request, file_);
  });
  EXPECT_EQ(download(options(server)).attempts, 2);
  EXPECT_EQ(read_file(path_), file_);
}

TEST_F(Download, ARefusedConnectionIsUnavailable) {
  LoopbackServer server(good());
  const auto wanted = options(server);
  server.stop();
  const std::string what = failure<errors::Unavailable>(wanted);
  EXPECT_NE(what.find("in try 2 of 2"), std::string::npos) << what;
}

TEST_F(Download, AnUnknownHostIsUnavailableAndTriedOnce) {
  LoopbackServer server(good());
  auto wanted = options(server);
  wanted.url = "http://nothing.invalid/data.gz";
  const std::string what = failure<errors::Unavailable>(wanted);
  EXPECT_NE(what.find("in try 1 of 2"), std::string::npos) << what;
}

TEST_F(Download, FollowsARedirectButNotToOtherProtocols) {
  write_file(dir_ / "secret", "secret");
  LoopbackServer server([&](ServedClient& to, const HttpRequest& request) {
    if (request.path == "/data.gz") {
      return to.answer("302 Found", "", 0, "Location: /moved\r\n");
    }
    if (request.path == "/evil") {
      return to.answer("302 Found", "", 0,
                       "Location: file://" + (dir_ / "secret") + "\r\n");
    }
    to.serve(request, file_);
  });
  download(options(server));
  EXPECT_EQ(read_file(path_), file_);
  auto wanted = options(server);
  wanted.url = server.url("/evil");
  wanted.path = dir_ / "evil";
  wanted.sha256.clear();
  wanted.expected_bytes = -1;
  failure<errors::Unavailable>(wanted);
  EXPECT_FALSE(exists(dir_ / "evil"));
  EXPECT_FALSE(exists(dir_ / "evil.part"));
}

TEST_F(Download, CopiesAFileUrlAndRefusesWhatCouldBlock) {
  write_file(dir_ / "source", file_);
  LoopbackServer server(good());
  auto wanted = options(server);
  wanted.url = "file://" + (dir_ / "source");
  download(wanted);
  EXPECT_EQ(read_file(path_), file_);

  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  wanted.path = dir_ / "other";
  wanted.url = "file://" + (dir_ / "pipe");
  failure<errors::InvalidArgument>(wanted);
  wanted.url = "file://" + (dir_ / "absent");
  failure<errors::NotFound>(wanted);
}

TEST_F(Download, RefusesOtherProtocolsAndBadOptions) {
  LoopbackServer server(good());
  auto wanted = options(server);
  for (const char* url : {"ftp://127.0.0.1/x", "127.0.0.1/x", "", "gopher://x",
                          "http://", "scp://a@b/c"}) {
    wanted.url = url;
    const std::string what = failure<errors::InvalidArgument>(wanted);
    EXPECT_NE(what.find("https://"), std::string::npos) << what;
  }
  wanted = options(server);
  wanted.sha256 = "abc";
  failure<errors::InvalidArgument>(wanted);
  wanted = options(server);
  wanted.total_timeout_ms = 0;
  failure<errors::InvalidArgument>(wanted);
  wanted = options(server);
  wanted.max_attempts = 0;
  failure<errors::InvalidArgument>(wanted);
  wanted = options(server);
  wanted.path.clear();
  failure<errors::InvalidArgument>(wanted);
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(Download, APathThatCannotBeWrittenIsANamedError) {
  LoopbackServer server(good());
  write_file(dir_ / "plain", "x");
  auto wanted = options(server);
  wanted.path = dir_ / "plain/data.gz";
  failure<errors::Unavailable>(wanted);
  wanted.path = dir_ / "data.gz";
  ASSERT_EQ(mkfifo((dir_ / "data.gz.part").c_str(), 0600), 0);
  failure<errors::Unavailable>(wanted);
}

TEST_F(Download, AFullDiskIsResourceExhausted) {
  // A limit on file sizes stands in for the full disk.
  LoopbackServer server(good());
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string what;
  try {
    download(options(server));
  } catch (const errors::ResourceExhausted& error) {
    what = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(what.find("free disk space"), std::string::npos) << what;
  EXPECT_NE(what.find(server.url("/data.gz")), std::string::npos) << what;
  EXPECT_FALSE(exists(path_));
}

TEST_F(Download, AnExceptionOfTheProgressCallbackPassesThrough) {
  LoopbackServer server(good());
  auto wanted = options(server);
  wanted.progress = [](int64_t, int64_t) { throw std::domain_error("enough"); };
  EXPECT_THROW(download(wanted), std::domain_error);
}

TEST_F(Download, TwoAtATimeDoNotSpoilEachOther) {
  LoopbackServer server(good());
  const auto wanted = options(server);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_NO_THROW(download(wanted)); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(server.requests(), 1);
  EXPECT_EQ(read_file(path_), file_);
  EXPECT_FALSE(exists(path_ + ".part"));
}

}  // namespace
}  // namespace berth::io
