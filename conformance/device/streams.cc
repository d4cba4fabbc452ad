// Streams: order, ends, failures.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "conformance/device_run.h"
#include "device/device_manager.h"

namespace berth::conformance {
namespace {

struct Told {
  std::function<void()> run, drop;
};

Work work_of(std::function<void()> run, std::function<void()> drop = {}) {
  Work work;
  work.what = "Told";
  work.site = Site{"model.cc", 7};
  work.context =
      std::make_unique<Told>(Told{std::move(run), std::move(drop)}).release();
  work.run = [](void* c, Stream&) { static_cast<Told*>(c)->run(); };
  work.drop = [](void* c) {
    const std::unique_ptr<Told> told(static_cast<Told*>(c));
    if (told->drop) told->drop();
  };
  return work;
}

std::vector<Stream*> streams() {
  Device& d = device_under_test();
  return {&d.compute_stream(), &d.copy_stream(), &d.plan_stream()};
}

TEST(Streams, RunWorkInOrderAndDropItOnceBehindItsRun) {
  for (Stream* stream : streams()) {
    std::vector<int> seen;
    for (int i = 0; i < 50; ++i) {
      stream->launch(work_of([&seen, i] { seen.push_back(2 * i); },
                             [&seen, i] { seen.push_back(2 * i + 1); }));
    }
    stream->synchronize(stream->record());
    // The last drop may come after its event: another work waits for it.
    stream->launch(work_of([] {}));
    stream->synchronize(stream->record());
    std::vector<int> all(100);
    for (int i = 0; i < 100; ++i) all[static_cast<size_t>(i)] = i;
    EXPECT_EQ(seen, all);
  }
}

TEST(Streams, AnEventIsDoneWhenTheWorkBeforeItIs) {
  for (Stream* stream : streams()) {
    bool ran = false;
    stream->launch(work_of([&ran] { ran = true; }));
    const Event event = stream->record();
    stream->synchronize(event);
    EXPECT_TRUE(ran);
    EXPECT_TRUE(stream->done(event));
  }
}

TEST(Streams, WaitForEventsOfOtherStreamsAndDevices) {
  Device& d = device_under_test();
  for (Device* other : DeviceManager::get().devices()) {
    std::vector<int> seen;
    other->compute_stream().launch(work_of([&seen] { seen.push_back(1); }));
    const Event event = other->compute_stream().record();
    d.copy_stream().wait(event);
    d.copy_stream().launch(work_of([&seen] { seen.push_back(2); }));
    d.copy_stream().synchronize(d.copy_stream().record());
    EXPECT_EQ(seen, (std::vector<int>{1, 2})) << other->str();
  }
}

TEST(Streams, KeepTheFirstErrorAndSkipWhatFollowsUntilReset) {
  Device& d = device_under_test();
  Stream& stream = d.compute_stream();
  if (stream.runs_inline()) {
    EXPECT_THROW(
        stream.launch(work_of([] { throw errors::InvalidArgument("bad"); })),
        errors::InvalidArgument);
    return;
  }
  bool ran = false;
  int dropped = 0;
  stream.launch(work_of([] { throw errors::InvalidArgument("bad number"); },
                        [&] { ++dropped; }));
  stream.launch(work_of([&] { ran = true; }, [&] { ++dropped; }));
  const Event event = stream.record();
  try {
    stream.synchronize(event);
    ADD_FAILURE() << "no error";
  } catch (const errors::InvalidArgument& e) {
    const std::string m = e.what();
    for (const char* part : {"Told", "model.cc:7", "bad number"}) {
      EXPECT_NE(m.find(part), std::string::npos) << m;
    }
  }
  EXPECT_FALSE(ran);
  d.reset_error();
  EXPECT_THROW(stream.synchronize(event), errors::InvalidArgument);
  stream.launch(work_of([&] { ran = true; }));
  stream.synchronize(stream.record());
  EXPECT_TRUE(ran);
  EXPECT_EQ(dropped, 2);  // a drop may come after the event of its work
}

}  // namespace
}  // namespace berth::conformance
