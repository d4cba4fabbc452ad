#include "base/free_ports.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace berth {
namespace {

TEST(FreePorts, DifferAndAreNoneOfOutgoingConnections) {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  const std::vector<int> ports = free_ports(40);
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 40u);
  for (const int port : ports) {
    EXPECT_GT(port, 1023);
    EXPECT_LT(port, first > 10240 ? first : 65536);
  }
  EXPECT_EQ(free_addresses(1)[0].find("127.0.0.1:"), 0u);
}

}  // namespace
}  // namespace berth
