#include "rpc/hello.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "rpc/bytes.h"
#include "rpc/socket.h"

namespace berth::rpc {

std::string encode(const Hello& hello) {
  ByteWriter w;
  w.number<uint16_t>(kVersion);
  w.number<uint64_t>(hello.cluster);
  w.text(hello.build);
  w.number<uint64_t>(hello.generation);
  w.task(hello.from);
  w.task(hello.to);
  w.number<uint8_t>(hello.purpose);
  w.text(hello.channel);
  w.raw({hello.nonce.data(), hello.nonce.size()});
  return w.take();
}

Hello parse_hello(std::string_view bytes) {
  ByteReader r(bytes);
  Hello h;
  const auto version = r.number<uint16_t>();
  if (version != kVersion) {
    throw errors::DataLoss(fmt::format(
        "its protocol is version {}, this one's is {}: both ends must be of "
        "one build",
        version, kVersion));
  }
  h.cluster = r.number<uint64_t>();
  h.build = r.text(256);
  h.generation = r.number<uint64_t>();
  h.from = r.task();
  h.to = r.task();
  h.purpose = r.number<uint8_t>();
  h.channel = r.text(256);
  std::memcpy(h.nonce.data(), r.raw(h.nonce.size()).data(), h.nonce.size());
  r.end();
  return h;
}

Nonce random_nonce() {
  Nonce n;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(n.data()), n.size()) != 1) {
    throw errors::Internal("libcrypto has no random bytes");
  }
  return n;
}

uint64_t random_number() {
  const Nonce n = random_nonce();
  uint64_t value;
  std::memcpy(&value, n.data(), sizeof(value));
  return value | 1;  // 0: none
}

Proof prove(const std::string& secret, std::string_view role,
            std::string_view hello, const Nonce& nonce) {
  ByteWriter w;
  w.text("berth cluster");
  w.text(role);
  w.text(hello);
  w.raw({nonce.data(), nonce.size()});
  const std::string text = w.take();
  Proof proof;
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &size);
  if (size != proof.size()) throw errors::Internal("libcrypto has no HMAC");
  return proof;
}

bool equal(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string encode_answer(const std::array<char, 32>& value) {
  ByteWriter w;
  w.number<uint8_t>(1);
  w.raw({value.data(), value.size()});
  return w.take();
}

std::string encode_answer(const Refusal& refusal) {
  ByteWriter w;
  w.number<uint8_t>(0);
  w.number<int32_t>(static_cast<int32_t>(refusal.code));
  w.text(refusal.reason.substr(0, 2000));
  return w.take();
}

std::optional<Refusal> parse_answer(std::string_view bytes,
                                    std::array<char, 32>* value) {
  ByteReader r(bytes);
  if (r.number<uint8_t>() == 1) {
    std::memcpy(value->data(), r.raw(value->size()).data(), value->size());
    r.end();
    return std::nullopt;
  }
  Refusal refusal;
  const auto code = r.number<int32_t>();
  if (code >= 1 && code <= 15) refusal.code = static_cast<errors::Code>(code);
  refusal.reason = r.text(2000);
  r.end();
  return refusal;
}

namespace {

std::string with_length(const std::string& bytes) {
  ByteWriter w;
  w.text(bytes);
  return w.take();
}

// Why this hello belongs to another cluster, checked before any proof.
std::optional<Refusal> stranger(const Hello& hello,
                                const Handshake::Gate& gate) {
  if (hello.cluster != gate.cluster) {
    return Refusal{errors::Code::kPermissionDenied,
                   fmt::format("its cluster is another one (hash {:016x}, "
                               "here {:016x}): compare TF_CONFIG of both",
                               hello.cluster, gate.cluster)};
  }
  if (hello.build != gate.build) {
    return Refusal{errors::Code::kPermissionDenied,
                   fmt::format("its Berth is another build ({}, here {}): "
                               "install the same on all machines",
                               hello.build, gate.build)};
  }
  if (hello.to != gate.self) {
    return Refusal{errors::Code::kPermissionDenied,
                   fmt::format("this is {}, not {}: the address in TF_CONFIG "
                               "leads to another task",
                               gate.self.str(), hello.to.str())};
  }
  return std::nullopt;
}

const Refusal& wrong_secret() {
  static const auto& refusal = *new Refusal{
      errors::Code::kPermissionDenied,
      "the secrets differ: set BERTH_CLUSTER_SECRET, or the file that "
      "BERTH_CLUSTER_SECRET_FILE names, to the same on all tasks"};
  return refusal;
}

}  // namespace

Handshake::State Handshake::refuse(const Refusal& refusal,
                                   std::string* answer) {
  reason_ = refusal.reason;
  *answer += with_length(encode_answer(refusal));
  return State::kRefused;
}

Handshake::State Handshake::take(std::string_view bytes, std::string* answer) {
  if (step_ == 0) {
    if (bytes.substr(0, kMagic.size()) != kMagic) {
      reason_ = "its first bytes are not Berth's";
      return State::kRefused;
    }
    uint32_t length;
    std::memcpy(&length, bytes.data() + kMagic.size(), sizeof(length));
    if (length > kMostHelloBytes || length == 0) {
      reason_ = fmt::format("its hello has {} bytes, at most {} are allowed",
                            length, kMostHelloBytes);
      return State::kRefused;
    }
    wanted_ = length;
    step_ = 1;
    return State::kReading;
  }
  if (step_ == 1) {
    bytes_ = bytes;
    try {
      hello_ = parse_hello(bytes);
    } catch (const errors::Error& e) {
      return refuse({errors::Code::kPermissionDenied, e.what()}, answer);
    }
    step_ = 2;
    if (const auto why = stranger(hello_, gate_)) return refuse(*why, answer);
    nonce_ = random_nonce();
    *answer += with_length(encode_answer(nonce_));
    wanted_ = sizeof(Proof);
    return State::kReading;
  }
  Proof proof;
  std::memcpy(proof.data(), bytes.data(), proof.size());
  if (!equal(proof, prove(gate_.secret, "dialler", bytes_, nonce_))) {
    return refuse(wrong_secret(), answer);
  }
  if (const auto why = gate_.admit(hello_)) return refuse(*why, answer);
  *answer += with_length(
      encode_answer(prove(gate_.secret, "listener", bytes_, nonce_)));
  return State::kAdmitted;
}

namespace {

std::optional<Refusal> read_answer(int fd, std::array<char, 32>* value,
                                   Deadline deadline, std::string* broken) {
  uint32_t length = 0;
  *broken = read_all(fd, &length, sizeof(length), deadline);
  if (broken->empty() && length > kMostHelloBytes) {
    *broken = "it does not speak Berth's protocol";
  }
  if (!broken->empty()) return std::nullopt;
  std::string bytes(length, '\0');
  *broken = read_all(fd, bytes.data(), length, deadline);
  if (!broken->empty()) return std::nullopt;
  try {
    return parse_answer(bytes, value);
  } catch (const errors::Error& e) {
    *broken = e.what();
    return std::nullopt;
  }
}

}  // namespace

std::optional<Refusal> introduce(int fd, const Hello& hello,
                                 const std::string& secret, Deadline deadline,
                                 std::string* broken) {
  const std::string bytes = encode(hello);
  const std::string first = std::string(kMagic) + with_length(bytes);
  *broken = write_all(fd, first.data(), first.size(), deadline);
  if (!broken->empty()) return std::nullopt;
  Nonce nonce;
  auto refusal = read_answer(fd, &nonce, deadline, broken);
  if (refusal || !broken->empty()) return refusal;
  const Proof mine = prove(secret, "dialler", bytes, nonce);
  *broken = write_all(fd, mine.data(), mine.size(), deadline);
  if (!broken->empty()) return std::nullopt;
  Proof its;
  refusal = read_answer(fd, &its, deadline, broken);
  if (refusal || !broken->empty()) return refusal;
  if (!equal(its, prove(secret, "listener", bytes, nonce))) {
    return wrong_secret();
  }
  return std::nullopt;
}

std::string encode_ticket(const Hello& hello, const std::string& secret) {
  const std::string bytes = encode(hello);
  const Proof proof = prove(secret, "ticket", bytes, Nonce{});
  return bytes + std::string(proof.data(), proof.size());
}

Hello parse_ticket(std::string_view bytes, const Handshake::Gate& gate,
                   std::optional<Refusal>* refusal) {
  if (bytes.size() < sizeof(Proof) || bytes.size() > kMostHelloBytes) {
    throw errors::DataLoss("a stream of the cluster has no hello");
  }
  const std::string_view hello = bytes.substr(0, bytes.size() - sizeof(Proof));
  Proof proof;
  std::memcpy(proof.data(), bytes.data() + hello.size(), proof.size());
  Hello h = parse_hello(hello);
  *refusal = stranger(h, gate);
  if (!*refusal &&
      !equal(proof, prove(gate.secret, "ticket", hello, Nonce{}))) {
    *refusal = wrong_secret();
  }
  if (!*refusal) *refusal = gate.admit(h);
  return h;
}

}  // namespace berth::rpc
