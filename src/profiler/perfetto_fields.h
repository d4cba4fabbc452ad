// Numbers of the fields of Perfetto's messages that Timeline::perfetto() writes
// and Timeline::read() reads: protos/perfetto/trace/**.proto of Perfetto.

#ifndef BERTH_PROFILER_PERFETTO_FIELDS_H_
#define BERTH_PROFILER_PERFETTO_FIELDS_H_

#include <array>
#include <cstdint>

namespace berth::profiler::perfetto_fields {

constexpr int kTracePacket = 1;

struct Packet {
  static constexpr int kClockSnapshot = 6, kTimestamp = 8, kSequence = 10,
                       kTrackEvent = 11, kInternedData = 12, kFlags = 13,
                       kTimestampClock = 58, kDefaults = 59,
                       kTrackDescriptor = 60,
                       // Not Perfetto's, which passes over it: see Own.
      kOwn = 2100;
  static constexpr int kCleared = 1, kNeedsState = 2;  // of kFlags
};

struct Descriptor {
  static constexpr int kUuid = 1, kName = 2, kProcess = 3, kParent = 5,
                       kCounter = 8;
  static constexpr int kPid = 1, kProcessName = 6;  // of kProcess
  static constexpr int kUnit = 3, kUnitBytes = 3;   // of kCounter
};

struct Event {
  static constexpr int kCategory = 3, kAnnotation = 4, kType = 9, kName = 10,
                       kTrack = 11, kCounterValue = 30, kFlow = 47,
                       kTerminatingFlow = 48;
  static constexpr int kBegin = 1, kEnd = 2, kCounter = 4;  // of kType
};

// Of kAnnotation.
struct Annotation {
  static constexpr int kName = 1, kInt = 4, kDouble = 5, kText = 17;
};

// Of kInternedData; their messages are {1: number, 2: text}.
struct Interned {
  static constexpr int kCategories = 1, kNames = 2, kAnnotations = 3,
                       kTexts = 29;
};

// What only Timeline::read() reads.
struct Own {
  // Of the first packet.
  static constexpr int kVersion = 1, kEvents = 2, kDropped = 3;
  // Of processes.
  static constexpr int kTask = 4, kSimulated = 5, kOrigin = 6;
  // Of events: their place, if it is not one after that of the event before;
  // the place minus those of `after`, packed; how long one lasts that has no
  // end of its own.
  static constexpr int kPlace = 7, kAfter = 8, kDuration = 9;
};

constexpr int kVersion = 1;
constexpr int kClock = 64;  // of a sequence alone
constexpr int kCommonClock = 6;

// Annotations, numbered from 1.
enum AnnotationName : size_t {
  kLine = 1,
  kFrame,
  kDetail,
  kBytes,
  kFlops,
  kPredicted,
  kRun
};
constexpr std::array kAnnotationNames = {
    "line", "frame", "detail", "bytes", "flops", "predicted us", "run"};

}  // namespace berth::profiler::perfetto_fields

#endif  // BERTH_PROFILER_PERFETTO_FIELDS_H_
