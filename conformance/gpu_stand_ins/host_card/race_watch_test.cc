// Unordered accesses are found, and only those.

#include "conformance/gpu_stand_ins/host_card/race_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::gpu {
namespace {

// Items of groups of four, which access memory in the order a test sets.
class Races : public testing::Test {
 protected:
  Races() {
    item_.items = 4;
    item_.groups = 2;
    item_.groups_y = 1;
    watch_.begin(code_);
    watch_.add(3, memory_.data(), 100);
  }
  void at(int group, int id) {
    item_.group[0] = group;
    item_.id = id;
  }
  void reads(int byte, unsigned bytes = 1) {
    RaceWatch::touch(memory_.data() + byte, bytes, 0);
  }
  void writes(int byte, unsigned bytes = 1) {
    RaceWatch::touch(memory_.data() + byte, bytes, 1);
  }

  HostItem item_{};
  const HostCode code_{"f", &item_, nullptr};
  std::vector<char> memory_ = std::vector<char>(200);
  RaceWatch watch_;
};

TEST_F(Races, AreTwoItemsAtOneByteOfWhichOneWrites) {
  at(0, 1);
  writes(8, 4);
  at(1, 2);
  reads(11);
  EXPECT_EQ(watch_.end(),
            "GPU kernel f: a race: item 1 of group 0 writes byte 11 of "
            "argument 3, which item 2 of group 1 reads without a barrier "
            "between them that would order it");
}

TEST_F(Races, AreSeenWhoeverComesFirst) {
  at(1, 2);
  reads(11);
  at(0, 1);
  writes(8, 4);
  EXPECT_NE(watch_.end().find("item 1 of group 0 writes byte 11"),
            std::string::npos);
}

TEST_F(Races, AreWritesOfTwoItems) {
  at(0, 0);
  writes(0);
  at(0, 1);
  writes(0);
  EXPECT_NE(watch_.end().find("which item 1 of group 0 writes"),
            std::string::npos);
}

TEST_F(Races, AreNotReadsOrNeighboursOrAnItemWithItself) {
  at(0, 0);
  reads(0, 8);
  writes(16, 4);
  reads(16, 4);
  writes(16, 4);
  at(0, 1);
  reads(0, 8);
  writes(20, 4);
  reads(150);  // memory outside the launch
  at(0, 2);
  writes(150);
  EXPECT_EQ(watch_.end(), "");
}

TEST_F(Races, OfAReaderAmongManyAreFound) {
  for (int id = 0; id < 4; ++id) {
    at(0, id);
    reads(5);
  }
  writes(5);  // the last one
  EXPECT_NE(watch_.end().find("which others read"), std::string::npos);
}

TEST_F(Races, EndAtABarrierForMemoryOfTheGroupAlone) {
  RaceWatch::see_local(memory_.data() + 100, 50, "box");
  at(0, 0);
  writes(100);
  writes(0);
  RaceWatch::new_section();
  at(0, 1);
  reads(100);
  EXPECT_EQ(watch_.end(), "");

  watch_.begin(code_);
  watch_.add(3, memory_.data(), 100);
  at(0, 0);
  writes(0);
  RaceWatch::new_section();
  at(0, 1);
  reads(0);
  EXPECT_NE(watch_.end(), "");
}

TEST_F(Races, OfMemoryOfTheGroupNameIt) {
  RaceWatch::see_local(memory_.data() + 100, 50, "box");
  at(0, 3);
  writes(104, 4);
  at(0, 0);
  reads(104, 4);
  EXPECT_EQ(watch_.end(),
            "GPU kernel f: a race: item 3 of group 0 writes byte 4 of box, "
            "which item 0 of group 0 reads without a barrier between them");
}

}  // namespace
}  // namespace berth::gpu
