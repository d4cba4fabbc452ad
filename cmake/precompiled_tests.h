// What most tests read.

#include <gtest/gtest.h>

#include "berth/berth.h"
