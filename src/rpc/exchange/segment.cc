#include "rpc/exchange/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "berth/errors.h"

namespace berth::exchange {

namespace {

constexpr uint64_t kSegmentMagic = 0x31676553'74726542;  // "BertSeg1"
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kLeastArena = int64_t{64} << 20;

struct Facts {
  uint64_t magic, generation;
  int64_t arena_bytes;
  int64_t members;
  std::atomic<uint64_t> channels[Segment::kChannels];  // name hashes; 0: free
};

struct Cores {
  std::atomic<uint64_t> words[16];
};

int64_t pages(int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
int64_t cores_at() { return pages(sizeof(Facts)); }
int64_t lines_at(int members) {
  return cores_at() + pages(static_cast<int64_t>(sizeof(Cores)) * members);
}
int64_t arenas_at(int members) {
  return lines_at(members) + pages(static_cast<int64_t>(sizeof(Line)) *
                                   members * Segment::kChannels);
}
int64_t file_bytes(int members, int64_t arena_bytes) {
  return arenas_at(members) + members * arena_bytes;
}

// FNV-1a, never 0.
uint64_t hash_of_name(const std::string& name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h == 0 ? 1 : h;
}

}  // namespace

Segment::Segment(Socket file, int member, int members, int64_t arena_bytes)
    : file_(std::move(file)),
      member_(member),
      members_(members),
      arena_bytes_(arena_bytes) {
  free_[0] = arena_bytes;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, file_bytes(members_, arena_bytes_));
}

void Segment::map() {
  const int64_t bytes = file_bytes(members_, arena_bytes_);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_NORESERVE, file_.fd(), 0);
  if (p == MAP_FAILED) {
    throw errors::ResourceExhausted(fmt::format(
        "the memory that tasks of this host share ({} GiB of addresses) cannot "
        "be mapped: {}; BERTH_TRANSPORT=sockets does without",
        bytes >> 30, std::strerror(errno)));
  }
  base_ = static_cast<std::byte*>(p);
}

void Segment::say_cores() {
  auto* cores = reinterpret_cast<Cores*>(base_ + cores_at()) + member_;
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  for (int i = 0; i < 1024 && i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) {
      cores->words[i / 64].fetch_or(uint64_t{1} << (i % 64),
                                    std::memory_order_relaxed);
    }
  }
}

bool Segment::has_cores() const {
  const auto* cores = reinterpret_cast<const Cores*>(base_ + cores_at());
  int count = 0;
  for (int w = 0; w < 16; ++w) {
    uint64_t all = 0;
    for (int m = 0; m < members_; ++m) all |= cores[m].words[w].load();
    count += __builtin_popcountll(all);
  }
  return count >= members_;
}

std::shared_ptr<Segment> Segment::create(int members, uint64_t generation,
                                         int64_t arena_bytes) {
  Socket file(memfd_create("berth", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  arena_bytes = std::max(pages(arena_bytes), kLeastArena);
  const char* what = "memfd_create";
  bool ok = static_cast<bool>(file);
  if (ok) {  // RLIMIT_FSIZE may forbid more
    what = "ftruncate";
    const auto set = [&] {
      return ftruncate(file.fd(), file_bytes(members, arena_bytes)) == 0;
    };
    while (!(ok = set()) && arena_bytes > kLeastArena) arena_bytes /= 2;
  }
  if (ok) {
    what = "fcntl";
    ok = fcntl(file.fd(), F_ADD_SEALS,
               F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  }
  if (!ok) {
    throw errors::ResourceExhausted(
        fmt::format("tasks of this host cannot share memory: {}: {}; "
                    "BERTH_TRANSPORT=sockets does without",
                    what, std::strerror(errno)));
  }
  std::shared_ptr<Segment> s(
      new Segment(std::move(file), 0, members, arena_bytes));
  s->map();
  auto* facts = reinterpret_cast<Facts*>(s->base_);
  facts->generation = generation;
  facts->arena_bytes = arena_bytes;
  facts->members = members;
  facts->magic = kSegmentMagic;
  s->say_cores();
  return s;
}

std::shared_ptr<Segment> Segment::attach(Socket file, int member, int members,
                                         uint64_t generation) {
  Facts facts;
  struct stat st;
  const int seals = fcntl(file.fd(), F_GET_SEALS);
  const bool good =
      fstat(file.fd(), &st) == 0 && seals >= 0 &&
      (seals & F_SEAL_SHRINK) != 0 &&
      pread(file.fd(), static_cast<void*>(&facts), sizeof(facts), 0) ==
          static_cast<ssize_t>(sizeof(facts)) &&
      facts.magic == kSegmentMagic && facts.generation == generation &&
      facts.members == members && facts.arena_bytes >= kLeastArena &&
      facts.arena_bytes % kPageBytes == 0 &&
      facts.arena_bytes <= (int64_t{1} << 46) / members &&
      st.st_size == file_bytes(members, facts.arena_bytes);
  if (!good) {
    throw errors::Unavailable(
        "the memory file that the leader of this host sent is not one of this "
        "generation of the cluster");
  }
  std::shared_ptr<Segment> s(
      new Segment(std::move(file), member, members, facts.arena_bytes));
  s->map();
  s->say_cores();
  return s;
}

int Segment::channel(const std::string& name) {
  const uint64_t hash = hash_of_name(name);
  auto* facts = reinterpret_cast<Facts*>(base_);
  for (int i = 0; i < kChannels; ++i) {
    const int c = static_cast<int>((hash + i) % kChannels);
    uint64_t was = 0;
    if (facts->channels[c].compare_exchange_strong(was, hash) || was == hash) {
      return c;
    }
  }
  throw errors::ResourceExhausted(
      fmt::format("an exchange has {} channels at most; '{}' is one more",
                  kChannels, name));
}

Line& Segment::line(int channel, int member) {
  return reinterpret_cast<Line*>(
      base_ + lines_at(members_))[channel * members_ + member];
}

std::byte* Segment::at(int member, int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || offset > arena_bytes_ - bytes) return nullptr;
  return base_ + arenas_at(members_) + member * arena_bytes_ + offset;
}

int64_t Segment::offset_of(const void* data, int64_t bytes) const {
  const int64_t offset =
      static_cast<const std::byte*>(data) - at(member_, 0, 0);
  return at(member_, offset, bytes) == nullptr ? -1 : offset;
}

int64_t Segment::allocate(int64_t bytes) {
  bytes = pages(std::max<int64_t>(bytes, 1));
  std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, have] = *it;
    if (have < bytes) continue;
    free_.erase(it);
    if (have > bytes) free_[offset + bytes] = have - bytes;
    used_[offset] = bytes;
    return offset;
  }
  return -1;
}

void Segment::free(int64_t offset) {
  std::lock_guard lock(mutex_);
  const auto node = used_.extract(offset);
  if (node.empty()) return;
  int64_t bytes = node.mapped();
  // Returns the pages to the system; the next read finds zeros.
  fallocate(file_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            arenas_at(members_) + member_ * arena_bytes_ + offset, bytes);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

void Segment::end() {
  for (int c = 0; c < kChannels; ++c) {
    for (int m = 0; m < members_; ++m) {
      std::atomic<uint32_t>& phase = line(c, m).phase;
      phase.fetch_or(kEndedBit);
      syscall(SYS_futex, &phase, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }
}

}  // namespace berth::exchange
